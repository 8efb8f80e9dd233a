package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// addition is something that "Adding things" of the architecture describes, and how few files it takes.
type addition struct {
	row   string // of the table
	limit int
	made  map[string]string // new files
	edits []edit            // of files that are there
}

// edit inserts a text behind another in a file.
type edit struct{ file, after, text string }

// The column is declared in a templ, and so in the file that is generated from it.
const (
	supplierColumn = "	ui.SupplierCol(func(o orderRow) string { return o.Supplier }),\n"
	shopColumn     = "	ui.TextCol(\"shop\", text.Text{ZH: \"门店\", EN: \"Shop\"}, func(o orderRow) string { return o.Shop }),\n"
)

// additions are built by TestAddedThingsAreServed.
var additions = []addition{
	{
		row: "list page", limit: 4,
		made: map[string]string{
			"internal/console/nights.go": `package console

import (
	"context"

	"backstop/internal/list"
	"backstop/internal/sweep"
)

// NightList declares the list of sweeps.
var NightList = list.New(list.Spec{
	Name:    "nights",
	Sources: []list.Source{{Table: "sweeps", Alias: "sw", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields:  []list.Field{{Name: "state", Column: "state", Values: sweep.Moves.Words()}},
})

// Nights reads one page of sweeps.
func (b *Reader) Nights(ctx context.Context, q list.Query, s list.Slice) (list.Page[sweep.Sweep], error) {
	return list.Read(ctx, b.db, q, s, func(x *sweep.Sweep) int64 { return x.ID })
}
`,
			"views/work/nights.go": `package work

import (
	"backstop/internal/base/text"
	"backstop/internal/sweep"
	"backstop/views/ui"
)

// NightTexts are the texts of the list of sweeps.
var NightTexts = ui.ListTexts{
	Title: text.Sweeps, Icon: "moon", None: text.Sweeps, NoneHow: text.Sweeps,
	Fields: map[string]ui.Field{"state": {Label: text.State}},
}

// NightColumns are those of the list of sweeps.
var NightColumns = []ui.Column[sweep.Sweep]{
	ui.TimeCol("began", text.Time, func(x sweep.Sweep) *int64 { return &x.BeganAt }),
	ui.TextCol("by", text.Text{ZH: "经办", EN: "Begun by"}, func(x sweep.Sweep) string { return x.By }),
}
`,
		},
		edits: []edit{
			{"views/search/lists.go", "		{\"merchants\", partners.MerchantTexts},\n", "		{\"nights\", work.NightTexts},\n"},
			{
				"web/console/routes.go", "		page(\"/sweeps\", access.ViewSweeps, s.sweepsPage, shown(\"moon\", text.Sweeps)),\n",
				`		page("/nights", access.ViewSweeps, serve(s, listPage[sweep.Sweep]{
			spec: console.NightList, always: true, read: s.Console.Nights, columns: work.NightColumns,
		}), web.Menu{}),
`,
			},
		},
	},
	{
		row: "column of orders", limit: 11,
		made: map[string]string{
			"migrations/20991231000000_order_shop.tx.up.sql":   "ALTER TABLE orders ADD COLUMN shop TEXT NOT NULL DEFAULT '';\n",
			"migrations/20991231000000_order_shop.tx.down.sql": "ALTER TABLE orders DROP COLUMN shop;\n",
		},
		edits: []edit{
			{"internal/order/order.go", "	CloseReason     string `bun:\"close_reason\"`\n", "	Shop            string `bun:\"shop\"`\n"},
			{
				"internal/payment/create.go", "as the buyer reads it.\"`\n",
				"	Shop string `json:\"shop\" max:\"64\" doc:\"Where it is sold.\"`\n",
			},
			{"internal/payment/create.go", "Exponent: exponent, ", "Shop: r.Shop, "},
			{"internal/console/orders.go", "	Subject    string       `bun:\"subject\"`\n", "	Shop       string       `bun:\"shop\"`\n"},
			{"internal/console/orders.go", "o.id, o.order_no, ", "o.shop, "},
			{"views/orders/orders.templ", supplierColumn, shopColumn},
			{"views/orders/orders_templ.go", supplierColumn, shopColumn},
			{"web/api/orders.go", "	Supplier        string  `json:\"supplier\"`\n", "	Shop            string  `json:\"shop\"`\n"},
			{"docs/merchants.md", "`supplier`, `subject`", ", `shop`"},
			{"web/api/orders.go", "OrderNo: o.OrderNo, OutTradeNo: o.OutTradeNo, Merchant: of, Supplier: code,", " Shop: o.Shop,"},
		},
	},
	{
		row: "decision of two people", limit: 4, // about an object that nothing was decided about before
		made: map[string]string{
			"internal/fund/dispute/concede.go": `package dispute

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Concession is the decision to concede a dispute.
func Concession() act.Kind {
	return act.Kind{
		Name: "dispute.concede", Object: "dispute", Permission: access.ProposeMoney,
		Params: act.ParamsOf[struct {
			Reference string ` + "`json:\"reference\" max:\"9\"`" + `
		}](),
		Load: act.ByID(func(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
			all, err := loadDisputes(ctx, q, []act.Ref{{ID: no}})
			if err != nil || len(all) == 0 {
				return act.Subject{}, act.ErrNotFound
			}
			return all[0], nil
		}),
		Do: act.Each(func(context.Context, db.Tx, act.Input, act.Subject) (act.Outcome, error) {
			return act.Outcome{}, nil
		}),
		Second: &act.Second{Approve: access.ApproveMoney},
	}
}
`,
		},
		edits: []edit{
			{
				"internal/approval/words.go", "var Decisions = []Words{\n",
				`	{"dispute.concede", text.Text{ZH: "认输", EN: "Concede the dispute"}, text.Text{ZH: "争议结束。", EN: "The dispute ends."}},
`,
			},
			{"internal/decision/decision.go", "	\"backstop/internal/fund/adjust\"\n", "	\"backstop/internal/fund/dispute\"\n"},
			{"internal/decision/decision.go", "batches.Decision(), ", "dispute.Concession(), "},
		},
	},
}

// apply returns the files of an addition, whole.
func (a addition) apply(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, text := range a.made {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there", name)
		}
		files[name] = text
	}
	for _, e := range a.edits {
		if files[e.file] == "" {
			raw, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			files[e.file] = string(raw)
		}
		before, after, ok := strings.Cut(files[e.file], e.after)
		if !ok {
			t.Errorf("%s has no %q", e.file, e.after)
		}
		files[e.file] = before + e.after + e.text + after
	}
	return files
}

// What is added takes few files, and "Adding things" names each.
func TestAddingThingsTakesFewFiles(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range additions {
		_, row, _ := strings.Cut(string(guide), "\n| "+a.row+" | ")
		row, _, _ = strings.Cut(row, "\n")
		files := a.apply(t)
		if len(files) > a.limit {
			t.Errorf("%s takes %d files, more than %d", a.row, len(files), a.limit)
		}
		for name := range files {
			if place := filepath.Dir(name); !strings.Contains(row, "`"+name+"`") && !strings.Contains(row, "`"+place+"`") {
				t.Errorf("%s touches %s, and the guide names neither it nor its folder", a.row, name)
			}
		}
	}
}

// served is a test of web/console that sees what was added.
const served = `package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
)

func TestAdded(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	if _, err := h.DB.NewRaw("UPDATE orders SET shop = 'Pudong'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	lead := h.SignIn(t, access.Lead)
	for page, want := range map[string]string{
		"/nights?lang=en&format=csv": "Begun by", "/orders?lang=en": ">Shop<", "/orders?lang=en&format=csv": "Pudong", "/openapi.yaml": "shop",
		"/disputes/D7401?lang=en": "Concede the dispute",
	} {
		if got := h.Page(t, lead, page); got.Status != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: %d, without %s: %s", page, got.Status, want, got.Body)
		}
	}
}
`

// What "Adding things" describes is built over this tree, without a copy of it, and served.
func TestAddedThingsAreServed(t *testing.T) {
	if os.Getenv("E2E_FULL") != "1" {
		t.Skip("it compiles the console: make soak")
	}
	dir, overlay := t.TempDir(), map[string]string{}
	put := func(name, text string) {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		full, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		overlay[full] = at
	}
	put("web/console/added_test.go", served)
	for _, a := range additions {
		for name, text := range a.apply(t) {
			put(name, text)
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	put("overlay.json", string(raw))
	test := exec.CommandContext(t.Context(), "go", "test", "-short", "-overlay", filepath.Join(dir, "overlay.json"),
		"-run", "^TestAdded$", "./web/console")
	if out, err := test.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v: %s", err, out)
	}
}
