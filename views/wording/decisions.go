package wording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// Decisions are all decisions in words, by the names of the contract.
var Decisions = func() map[string]approval.Words {
	all := map[string]approval.Words{}
	for _, w := range approval.Decisions {
		all[w.Kind] = w
	}
	return all
}()

// Action names an action.
func Action(action string) text.Text {
	if d, ok := Decisions[action]; ok {
		return d.Name
	}
	return text.Text{ZH: action, EN: action}
}

// ProposalFacts are the parameters of a proposal about an object in words, those that the page has a word
// for first.
func ProposalFacts(p *ui.Page, objectID string, raw json.RawMessage, currency string) (all []ui.Fact) {
	var values map[string]any
	read := json.NewDecoder(strings.NewReader(string(raw)))
	read.UseNumber() // amounts are exact
	if read.Decode(&values) != nil {
		return nil
	}
	add := func(name string) {
		if changes, ok := values[name].([]any); ok && name == "changes" {
			all = append(all, changeFacts(p, objectID, changes)...)
			delete(values, name)
			return
		}
		if value, ok := values[name]; ok && value != nil && value != "" {
			all = append(all, ui.TextFact(ui.TextFor(approval.ParamWords, name), "wrap", paramText(p, name, value, currency)))
		}
		delete(values, name)
	}
	for _, name := range paramOrder {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		add(name)
	}
	return all
}

// paramText is one value of a parameter.
func paramText(p *ui.Page, name string, value any, currency string) string {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && name == "amount" {
			return ui.MoneyText(n, currency)
		} else if err == nil && name == "rows" {
			return ui.Count(n)
		}
		return v.String()
	case bool:
		if v {
			return p.T(text.Yes)
		}
		return p.T(text.No)
	case string:
		if w, ok := approval.ChoiceWords[name][v]; ok {
			return p.T(w)
		}
		if w, ok := BatchActions[v]; ok && name == "action" {
			return p.T(w[0])
		}
		return v
	case []any:
		if name == "sums" {
			return sumsText(v)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// sumsText is the money of a batch by currency, each with its rows.
func sumsText(sums []any) string {
	var all []string
	for _, x := range sums {
		one, _ := x.(map[string]any)
		amount, _ := one["amount"].(json.Number)
		currency, _ := one["currency"].(string)
		if minor, err := amount.Int64(); err == nil {
			all = append(all, fmt.Sprintf("%s (%v)", ui.MoneyText(minor, currency), one["rows"]))
		}
	}
	return strings.Join(all, " · ")
}

// changeFacts are the fields that a change of an object of the settings is about.
func changeFacts(p *ui.Page, object string, changes []any) (all []ui.Fact) {
	for _, x := range changes {
		c, _ := x.(map[string]any)
		field, value := FieldName(p, object, fmt.Sprint(c["field"])), func(name string) string { return SettingValue(p, fmt.Sprint(c[name])) }
		all = append(all, ui.TextFact(field, "wrap", value("old")+" → "+value("new")))
	}
	return all
}

// ProposalEvidence is the evidence among the parameters of a proposal; "" = there is none.
func ProposalEvidence(raw json.RawMessage) string {
	var params struct {
		Evidence string `json:"evidence"`
	}
	_ = json.Unmarshal(raw, &params) // what cannot be read has none
	return params.Evidence
}

// IsUnverified reports whether a proposal is made without the supplier's word.
func IsUnverified(raw json.RawMessage) bool {
	var params struct {
		Unverified bool `json:"unverified"`
	}
	return json.Unmarshal(raw, &params) == nil && params.Unverified
}

var paramOrder = []string{
	"action", "credit", "rows", "sums", "filter", "changes", "order_no", "trade_no", "amount", "late", "outcome",
	"reference", "evidence", "unverified",
}

// MakerAndChecker are who proposed and who decided, in one line.
func MakerAndChecker(p *ui.Page, a *console.Approval) string {
	maker := Maker(p, a)
	switch {
	case a.SinglePerson:
		return maker + " · " + p.T(text.SinglePerson)
	case a.CheckerName != "":
		return maker + " → " + a.CheckerName
	}
	return maker
}

// Maker is who proposed: an operator by name alone, a merchant by its kind too.
func Maker(p *ui.Page, a *console.Approval) string {
	switch {
	case a.MakerName == approval.ByCommand:
		return p.T(text.ByCommand)
	case strings.Contains(a.MakerName, ":"): // no operator has one in his name
		return Actor(p, a.MakerName)
	}
	return a.MakerName
}

// BatchActions are the actions in words: as a title, and on the button that starts so many.
var BatchActions = map[string][2]text.Text{
	"resend":  {{ZH: "批量补单", EN: "Send notifications again"}, {ZH: "补发 %s 条", EN: "Send %s again"}},
	"query":   {{ZH: "批量查单", EN: "Query orders"}, {ZH: "查询 %s 笔", EN: "Query %s"}},
	"rerun":   {{ZH: "批量重新查单", EN: "Rerun orders"}, {ZH: "重新查单 %s 笔", EN: "Rerun %s"}},
	"redrive": {{ZH: "批量重新执行", EN: "Run again"}, {ZH: "重新执行 %s 条", EN: "Run %s again"}},
	"close":   {{ZH: "批量关单", EN: "Close orders"}, {ZH: "关闭 %s 笔", EN: "Close %s"}},
}

// MaxRuns is how often one approval may run.
const MaxRuns = 3
