package wording_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/base/text"
)

// tight is Chinese that touches a Latin letter, a digit or a number's place.
var tight = regexp.MustCompile(`\p{Han}([A-Za-z0-9]|%(\[\d\])?d)|[A-Za-z0-9]\p{Han}`)

// joined are the texts in which what touches Chinese is the place of Chinese words.
var joined = map[string]bool{
	"尝试次数过多，请 %s后再试。": true, // 5 分 00 秒
	"%s前": true,
	"%s后": true,
	"补偿失败：%s执行了 %d 次，都没有成功":                        true, // 补发通知
	"%s 笔订单%s第 3 次查单后超过 30 分钟仍无结果；会继续自动查单，请到渠道侧核实": true, // （渠道 wx）
}

// In Chinese there is a space between its characters and Latin letters or digits.
func TestChineseIsSetApartFromLatinAndDigits(t *testing.T) {
	t.Parallel()
	all, found := map[string]text.Text{}, 0
	for _, root := range []string{"..", "../../internal", "../../web"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
				!strings.HasSuffix(name, "_templ.go") {
				readTexts(t, name, all)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for where, both := range all {
		if !hasHan(both.ZH) {
			continue
		}
		found++
		if at := tight.FindString(both.ZH); at != "" && !joined[both.ZH] {
			t.Errorf("%s: %q in %q", where, at, both.ZH)
		}
	}
	if found < 600 {
		t.Errorf("only %d texts were read", found)
	}
	for _, wrong := range []string{"共3 条", "按Excel 导出", "Redis没有应答", "共%d 条"} {
		if !tight.MatchString(wrong) {
			t.Errorf("%q is not found", wrong)
		}
	}
}
