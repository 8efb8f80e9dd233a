package field_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/base/field"
	"backstop/internal/base/money"
)

type common struct {
	Note string `json:"note" kind:"text" max:"5"`
}

type wish struct {
	common

	TradeNo string   `json:"trade_no" kind:"word" max:"8" required:"true" doc:"the supplier's number" example:"4200"`
	Amount  int64    `json:"amount,omitempty" kind:"money" min:"1" max:"100" required:"true"`
	Rate    int      `json:"rate" min:"2" max:"9" default:"5"`
	Outcome string   `json:"outcome" choices:"kept|refunded" says:"use kept or refunded, as the statement says"`
	Late    *bool    `json:"late"`
	Title   string   `json:"title" min:"2"`
	IDs     []string `json:"ids" max:"2"`
	Days    *int64   `json:"days" min:"1" max:"9"`
	Fee     int64    `json:"fee" kind:"money"`
	Hidden  int      `json:"-"`
}

func TestFieldsAreReadFromTags(t *testing.T) {
	t.Parallel()
	all := map[string]field.Field{}
	for _, f := range field.Of(reflect.TypeFor[wish]()) {
		all[f.Name] = f
	}
	if len(all) != 10 {
		t.Fatalf("%d fields: %v", len(all), all)
	}
	for name, want := range map[string]field.Kind{
		"note": field.Text, "trade_no": field.Word, "amount": field.Money, "rate": field.Number, "outcome": field.Choice,
		"late": field.Flag, "title": field.Line, "ids": field.List, "days": field.Number, "fee": field.Money,
	} {
		if got := all[name].Kind; got != want {
			t.Errorf("%s is a %s, want %s", name, got, want)
		}
	}
	if f := all["trade_no"]; !f.Required || f.Max != 8 || f.Doc != "the supplier's number" || f.Example != "4200" {
		t.Errorf("trade_no: %+v", f)
	}
	if f := all["rate"]; f.Required || f.Min != 2 || f.Default != "5" {
		t.Errorf("rate: %+v", f)
	}
}

func TestOnlyInvalidValuesHaveAProblem(t *testing.T) {
	t.Parallel()
	off, none := false, int64(0)
	good := wish{
		common: common{"a\nb"}, TradeNo: "4200", Amount: 100, Rate: 2, Outcome: "kept", Late: &off, Title: "字字", IDs: []string{"1", "2"},
	}
	for name, c := range map[string]struct {
		change func(*wish)
		want   string // field: problem
	}{
		"nothing":           {func(*wish) {}, ""},
		"what is optional":  {func(w *wish) { w.Note, w.Rate, w.Outcome, w.Late, w.Title, w.IDs = "", 0, "", nil, "", nil }, ""},
		"no number":         {func(w *wish) { w.TradeNo = "" }, "trade_no: this field is required"},
		"a space":           {func(w *wish) { w.TradeNo = "42 00" }, "trade_no: use no control characters"},
		"a long number":     {func(w *wish) { w.TradeNo = "123456789" }, "trade_no: use at most 8 characters"},
		"no amount":         {func(w *wish) { w.Amount = 0 }, "amount: use a number from 1 to 100"},
		"a high amount":     {func(w *wish) { w.Amount = 101 }, "amount: use a number from 1 to 100"},
		"a low rate":        {func(w *wish) { w.Rate = 1 }, "rate: use a number from 2 to 9"},
		"another outcome":   {func(w *wish) { w.Outcome = "lost" }, "outcome: use kept or refunded, as the statement says"},
		"a short title":     {func(w *wish) { w.Title = "字" }, "title: use at least 2 characters"},
		"a title of lines":  {func(w *wish) { w.Title = "a\nb" }, "title: use no control characters"},
		"a note with a NUL": {func(w *wish) { w.Note = "a\x00" }, "note: use no control characters"},
		"broken UTF-8":      {func(w *wish) { w.Note = "a\xff" }, "note: use no control characters"},
		"no days":           {func(w *wish) { w.Days = &none }, "days: use a number from 1 to 9"},
		"a negative fee":    {func(w *wish) { w.Fee = -1 }, "fee: use a number from 1 to " + strconv.Itoa(money.MaxMinor)},
		"many items":        {func(w *wish) { w.IDs = []string{"1", "2", "3"} }, "ids: use at most 2 items"},
	} {
		w := good
		c.change(&w)
		var problems []string
		for _, f := range field.Of(reflect.TypeFor[wish]()) {
			if p := f.Problem(reflect.ValueOf(w).FieldByIndex(f.Index)); p.EN != "" {
				problems = append(problems, f.Name+": "+p.EN)
			}
		}
		if got := strings.Join(problems, "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatIsNotKnownIsAMistake(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]any{
		"a tag": struct {
			A string `json:"a" maximum:"3"`
		}{},
		"a kind": struct {
			A string `json:"a" kind:"colour"`
		}{},
		"a kind of another type": struct {
			A string `json:"a" kind:"money"`
		}{},
		"a bound": struct {
			A int `json:"a" max:"many"`
		}{},
		"a choice of none": struct {
			A string `json:"a" kind:"choice"`
		}{},
		"no name": struct {
			A string `doc:"a"`
		}{},
		"a field of no kind": struct {
			A float64 `json:"a"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			field.Of(reflect.TypeOf(of))
		}()
	}
}
