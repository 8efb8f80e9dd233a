package wording

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/views/ui"
)

// valueWords are the words of a difference that stand for a value.
var valueWords = map[string]text.Text{
	"none":                              text.None,
	"set":                               {ZH: "已设置", EN: "set"},
	"unset":                             {ZH: "未设置", EN: "unset"},
	"changed":                           {ZH: "已更换", EN: "changed"},
	"changed, the old one stays valid":  {ZH: "已更换，旧密钥仍有效", EN: "changed, the old one stays valid"},
	"changed, the old one ends at once": {ZH: "已更换，旧密钥立即失效", EN: "changed, the old one ends at once"},
	"the old one ends":                  {ZH: "旧密钥失效", EN: "the old one ends"},
	"enabled":                           {ZH: "已启用", EN: "enabled"},
	"disabled":                          {ZH: "已停用", EN: "disabled"},
	"unreadable":                        {ZH: "无法读取", EN: "unreadable"},
	"written anew":                      {ZH: "重新写入", EN: "written anew"},
}

var tDigest = text.Text{ZH: "摘要 %s", EN: "digest %s"}

// FieldName names a field of an object of the settings, with its name in files behind it.
func FieldName(p *ui.Page, object, path string) text.Text {
	if p.FieldLabel == nil || p.FieldLabel(object, path) == (text.Text{}) {
		return text.Text{ZH: path, EN: path}
	}
	label := p.FieldLabel(object, path)
	return text.Text{ZH: label.ZH + "（" + path + "）", EN: label.EN + " (" + path + ")"}
}

// SettingValue is a value of a difference between settings. Of a secret it may be a digest.
func SettingValue(p *ui.Page, value string) string {
	if word, ok := valueWords[value]; ok {
		return p.T(word)
	}
	if before, digest, ok := strings.Cut(value, "digest "); ok && (before == "" || strings.HasSuffix(before, ", ")) {
		return before + p.T(tDigest, digest)
	}
	return value
}
