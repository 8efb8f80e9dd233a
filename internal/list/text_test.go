package list

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"
)

func TestWordsAreSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Word{
		"":                        nil,
		" \t\u3000":               nil,
		"m1":                      {{"m1", "", "m1"}},
		"merchant:m1 a":           {{"merchant:m1", "merchant", "m1"}, {"a", "", "a"}},
		`merchant:"Green Tea"  x`: {{`merchant:"Green Tea"`, "merchant", "Green Tea"}, {"x", "", "x"}},
		`a:"b\"c\\d"`:             {{`a:"b\"c\\d"`, "a", `b"c\d`}},
		"商户：“绿 茶”":                {{"商户：“绿 茶”", "商户", "绿 茶"}},
		"from:14:05":              {{"from:14:05", "from", "14:05"}},
		`a:"open`:                 {{`a:"open`, "a", "open"}},
		"amount:>100":             {{"amount:>100", "amount", ">100"}},
		":x":                      {{":x", "", ":x"}},
		"state:":                  {{"state:", "state", ""}},
	} {
		if got := Words(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

var textSpec = &Spec{Name: "texts", Fields: []Field{
	{Name: "no"},
	{Name: "status", Values: []string{"paid", "closed"}},
	{Name: "merchant", Suggest: noChoices},
	{Name: "supplier", Suggest: noChoices},
	{Name: "cause", Check: func(v string) string {
		if v == "wrong" {
			return "use another"
		}
		return ""
	}},
	{Name: "secret", Hidden: true},
}}

func reading() Reading {
	return Reading{
		Spec: textSpec,
		Choices: map[string][]Choice{
			"status":   {{Value: "paid"}, {Value: "closed"}},
			"merchant": {{Value: "m1", Name: "Green Tea"}, {Value: "m2", Name: "Green Grocer"}, {Value: "wx", Name: "Shop"}},
			"supplier": {{Value: "wx", Name: "wechatpay"}, {Value: "ali", Name: "alipay"}},
		},
		Alias: func(word string) []string {
			return map[string][]string{"商户": {"merchant"}}[word]
		},
		Labels: func(field, value string) []string {
			if field == "status" && value == "paid" {
				return []string{"已支付", "Money arrived"}
			}
			return []string{value}
		},
	}
}

func TestWordsBecomeTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Term{
		"merchant:m1":                          {{"merchant", "m1"}},
		"MERCHANT:M1":                          {{"merchant", "m1"}},
		`merchant:"green tea"`:                 {{"merchant", "m1"}},
		"merchant:grocer":                      {{"merchant", "m2"}},
		"merchant:gone":                        {{"merchant", "gone"}},
		"商户:m2":                                {{"merchant", "m2"}},
		"state:paid":                           {{"status", "paid"}},
		"status:已支付":                           {{"status", "paid"}},
		"status:支付":                            {{"status", "paid"}},
		`status:"money arrived"`:               {{"status", "paid"}},
		"status:arriv":                         {{"status", "paid"}},
		"ali":                                  {{"supplier", "ali"}},
		"order:X-1 cause:timeout state:closed": {{"no", "X-1"}, {"cause", "timeout"}, {"status", "closed"}},
	} {
		got, problems := reading().ReadText(Words(text))
		if len(problems) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v (%+v), want %+v", text, got, problems, want)
		}
	}
	for text, want := range map[string]Fault{
		"amont:5":                  UnknownField,
		"secret:5":                 UnknownField,
		"merchant:":                NoValue,
		"state:parked":             WrongValue,
		"cause:wrong":              BadValue,
		"merchant:green":           Ambiguous,
		"wx":                       Ambiguous,
		"nonsense":                 NoField,
		"arriv":                    NoField, // a part of a label stands for it only after its field
		"state:p":                  WrongValue,
		"state:paid status:closed": Repeated,
	} {
		_, problems := reading().ReadText(Words(text))
		if len(problems) != 1 || problems[0].Fault != want {
			t.Errorf("%q: %+v, want %s", text, problems, want)
		}
	}
}

func TestTheLastWordGoesOn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":              {"no:", "status:", "merchant:", "supplier:", "cause:"},
		"mer":           {"merchant:"},
		"status:paid m": {"status:paid merchant:"},
		"merchant:gr":   {"merchant:m1 ", "merchant:m2 "},
		"tea":           {"merchant:m1 "},
		"商户":            {"merchant:"},
		"state:cl":      {"state:closed "},
		"state:ARR":     {"state:paid "},
		"nothing:x":     nil,
	} {
		var got []string
		for _, p := range reading().Propose(text, 8) {
			got = append(got, p.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q continues as %q, want %q", text, got, want)
		}
	}
	if got := reading().Propose("", 2); len(got) != 2 {
		t.Errorf("%d proposals, want 2", len(got))
	}
}

// Terms survive being written and read, whatever their values are.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"m1", "Green Tea", `a"b`, `\`, "“”", "a:b", "：", "\u3000", ">=100 CNY", "", "a\x00b", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, w := range Words(value) {
			if w.Text == "" || !strings.Contains(value, w.Text) {
				t.Fatalf("%q has the word %q", value, w.Text)
			}
		}
		reading().ReadText(Words(value))
		reading().Propose(value, 5)
		text := Text([]Term{{"merchant", value}, {"no", "7"}})
		want := []Word{{Field: "merchant", Value: value}, {Text: "no:7", Field: "no", Value: "7"}}
		got := Words(text)
		if len(got) != 2 || got[0].Field != want[0].Field || got[0].Value != value || got[1] != want[1] {
			t.Fatalf("%q was written as %q and read as %+v", value, text, got)
		}
	})
}

func noChoices(context.Context, bun.IDB) ([]Choice, error) { return nil, nil }
