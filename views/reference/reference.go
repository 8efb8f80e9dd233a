// Package reference is the page of the API: what the file for programs says, for people.
package reference

import (
	"strings"

	"backstop/docs"
	"backstop/internal/base/text"
	"backstop/views/panel"
	"backstop/views/ui"
)

// Reference is the description of the API.
type Reference struct {
	Groups  []Group
	Events  []Event
	Schemas []Schema
	Errors  []ErrorCode
}

// Group is the operations for one kind of caller.
type Group struct {
	Name       string // tag: "merchants", "administration", "installation"
	Operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	ID, Method, Path, Summary, Permitted string
	Keys                                 []string // names of the security schemes of which one is needed
	Parameters, Body                     []Field
	Answers                              []string // names of schemas
}

// Field is a parameter, or a field of a body or an answer.
type Field struct {
	Name, In, Type, Doc, Example string
	Schema                       string // the schema of its value; "" = none that has a name
	Required                     bool
}

// Schema is what answers consist of.
type Schema struct {
	Name   string
	Fields []Field
}

// Event is a type of notification.
type Event struct{ Name, Description, Example string }

// ErrorCode is a row of the table of errors.
type ErrorCode struct{ Code, Status, Meaning, Remedy string }

// anchor is where a schema is on the page.
func anchor(name string) string { return "schema-" + name }

// ErrorAnchor is where the code of an error is on the page.
func ErrorAnchor(code string) string { return "error-" + strings.ReplaceAll(code, "_", "-") }

// rules are the rules that hold for every call, as HTML.
var rules = panel.Markdown(docs.API, "rules", func(string) bool { return false })

var groups = map[string]text.Text{
	"merchants":      {ZH: "商户接口", EN: "For merchants"},
	"administration": {ZH: "管理与监控接口", EN: "Administration and monitoring"},
	"installation":   {ZH: "公开接口", EN: "Public"},
}

var keyNames = map[string]text.Text{
	"merchantKey": {ZH: "商户 api_key", EN: "the merchant's api_key"},
	"payoutKey":   {ZH: "商户 payout_key", EN: "the merchant's payout_key"},
	"token":       {ZH: "服务令牌或个人令牌", EN: "a service's or a personal token"},
}

// unmarked leaves out what marks a text up.
var unmarked = strings.NewReplacer("`", "", "**", "")

func (o Operation) title() string { return o.Method + " " + o.Path }

var (
	tTitle    = text.Text{ZH: "接口文档", EN: "API reference"}
	tIntro    = text.Text{ZH: "请求与应答均为 JSON，密钥放在 Authorization: Bearer 中。说明取自程序读取请求所用的声明，原文为英文；供程序使用的同一份描述：", EN: "Requests and answers are JSON, the key goes into Authorization: Bearer. The same description for programs:"}
	tRules    = text.Text{ZH: "通用规则", EN: "Rules of every call"}
	tContents = text.Text{ZH: "目录", EN: "Contents"}
	tKey      = text.Text{ZH: "密钥", EN: "Key"}
	tNoKey    = text.Text{ZH: "无需密钥", EN: "No key"}
	tOr       = text.Text{ZH: " 或 ", EN: " or "}
	tField    = text.Text{ZH: "字段", EN: "Field"}
	tIn       = text.Text{ZH: "位置", EN: "In"}
	tType     = text.Text{ZH: "类型", EN: "Type"}
	tMeaning  = text.Text{ZH: "含义", EN: "Meaning"}
	tRequired = text.Text{ZH: "必填", EN: "required"}
	tExample  = text.Text{ZH: "示例", EN: "Example"}
	tAnswers  = text.Text{ZH: "应答", EN: "Answers"}
	tEvents   = text.Text{ZH: "通知类型", EN: "Types of notifications"}
	tSchemas  = text.Text{ZH: "应答结构", EN: "Answers"}
	tErrors   = text.Text{ZH: "错误码", EN: "Codes of errors"}
	tCode     = text.Text{ZH: "错误码", EN: "Code"}
	tStatus   = text.Text{ZH: "状态码", EN: "Status"}
	tRemedy   = text.Text{ZH: "处理办法", EN: "What to do"}
)

// keysOf names the keys of which an operation takes one.
func keysOf(p *ui.Page, names []string) string {
	if len(names) == 0 {
		return p.T(tNoKey)
	}
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = p.T(keyNames[name])
	}
	return p.T(tKey) + ": " + strings.Join(all, p.T(tOr)) + "."
}
