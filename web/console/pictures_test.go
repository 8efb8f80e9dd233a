package console

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var (
	demoAt   = flag.String("demo", "", "address of a server that plays the demo, to take the console's pictures of")
	demoPass = flag.String("demo-password", "", "the password there of the operators li.hang and wang.min")
	theme    = flag.String("theme", "light", "the theme of the pictures")
	only     = flag.String("only", "", "the name of the only picture to take")
)

// TestPicturesOfTheDemo takes the pictures of docs/console.md, and the moving one of an order's story. It runs where
// -demo names a server (`serve --demo`, after some ten minutes) that has the
// operators li.hang with the role ops and wang.min with the role lead, a proposal about a wrong
// amount that waits for a lead, a batch that has run, a sweep, and for li.hang views and a
// message in the inbox:
//
//	go test ./web/console -run PicturesOfTheDemo -demo http://127.0.0.1:8080 -demo-password … -screenshots $PWD/docs/screenshots
func TestPicturesOfTheDemo(t *testing.T) {
	if *demoAt == "" || *screenshots == "" {
		t.Skip("no -demo or no -screenshots")
	}
	const (
		ops, lead  = "li.hang", "wang.min"
		told       = "/notifications?merchant=demo-flaky&status=delivered&type=order.paid"
		unnotified = "/notifications?merchant=demo-down&status=retry_wait&type=order.paid"
		tried      = "tr[data-row]:has(.attempts .f) "
		forged     = "POST /callback/demo-sorted HTTP/1.1\nHost: pay.example.com\nContent-Type: application/x-www-form-urlencoded\n\n" +
			"amount=1&currency=CNY&order_no=382421814191587328&status=SUCCESS&trade_no=T-1&sign=00000000000000000000000000000000"
	)
	follow := func(link string) []chromedp.Action {
		return []chromedp.Action{
			chromedp.Evaluate("document.querySelector("+strconv.Quote(link)+").click()", nil), // a list at work moves under a pointer
			becomes("location.pathname.split('/').length > 2 && " + whole),
		}
	}
	pictures := []struct {
		name, operator, path string
		height               int64
		then                 []chromedp.Action
	}{
		{"overview", ops, "/?range=1h", 1130, nil},
		{"incident", ops, "/", 900, follow(`a[href^="/attention/"]`)},
		{"analytics", ops, "/analytics?range=24h", 2000, nil},
		{"reports", ops, "/reports", 620, nil},
		{"report", ops, "/reports", 1200, follow(`a[href^="/reports/"]`)},
		{"orders", ops, "/orders", 900, nil},
		{"display", ops, "/orders", 760, []chromedp.Action{
			chromedp.Click("#display > summary", chromedp.ByQuery),
			chromedp.WaitVisible("#display .drop", chromedp.ByQuery),
		}},
		{"palette", ops, "/orders", 620, []chromedp.Action{
			becomes(whole), ctrlK(input.ModifierCtrl), chromedp.KeyEvent("batch"),
			becomes(`document.querySelector("#palette input").value === "batch" && !!document.querySelector("#hits [aria-selected=true]")`),
		}},
		{"order", ops, told, 1500, follow(tried + `a[href^="/orders/"]`)},
		{"order-waiting", ops, unnotified, 1300, follow(`tr[data-row] a[href^="/orders/"]`)},
		{"callbacks", ops, "/callbacks", 900, nil},
		{"callback", ops, "/callbacks?outcome=amount_mismatch", 1100, follow(`tr[data-row] a[href^="/callbacks/"]`)},
		{"notifications", ops, "/notifications", 900, nil},
		{"notification", ops, told, 1100, follow(tried + `a[href^="/notifications/"]`)},
		{"plan", ops, unnotified, 900, []chromedp.Action{
			chromedp.Click("[data-all]"), chromedp.Click("button[value=rows]"),
			chromedp.WaitVisible("#run-reason"),
		}},
		{"exceptions", ops, "/exceptions", 900, nil},
		{"refunds", ops, "/refunds", 760, nil},
		{"refund", ops, "/refunds?status=succeeded", 1250, follow(`tr[data-row] a[href^="/refunds/"]`)},
		{"payouts", ops, "/payouts", 760, nil},
		{"payout", ops, "/payouts?status=reversed", 1250, follow(`tr[data-row] a[href^="/payouts/"]`)},
		{"disputes", ops, "/disputes", 760, nil},
		{"dispute", ops, "/disputes", 1250, follow(`tr[data-row] a[href^="/disputes/"]`)},
		{"accounts", ops, "/accounts", 900, nil},
		{"account", ops, "/accounts/merchant:demo-flaky/CNY", 900, nil},
		{"statement", ops, "/merchants/demo-flaky/statement", 760, nil},
		{"compensations", ops, "/compensations", 760, nil},
		{"compensation", ops, "/compensations", 760, follow(`tr[data-row] a[href^="/compensations/"]`)},
		{"batches", ops, "/batches", 620, nil},
		{"batch", ops, "/batches", 760, follow(`tr[data-row]:has(.ok) a[href^="/batches/"]`)},
		{"sweeps", ops, "/sweeps", 620, nil},
		{"merchants", ops, "/merchants", 620, nil},
		{"merchant", ops, "/merchants/demo-down", 900, nil},
		{"suppliers", ops, "/suppliers", 620, nil},
		{"supplier", ops, "/suppliers", 1250, follow(`a[href^="/suppliers/"]`)},
		{
			"playground", ops, "/suppliers/demo-sorted/playground", 1000,
			[]chromedp.Action{
				chromedp.SetValue("textarea[name=request]", forged, chromedp.ByQuery),
				chromedp.Submit("textarea[name=request]", chromedp.ByQuery), becomes("!!document.querySelector('.checks, ol, table') && " +
					whole),
			},
		},
		{"queues", ops, "/queues", 760, nil},
		{"queue", ops, "/queues/notify", 620, nil},
		{"alerts", ops, "/alerts", 900, nil},
		{"views", ops, "/views", 500, nil},
		{"inbox", ops, "/inbox", 500, nil},
		{"search", lead, "/orders", 620, []chromedp.Action{
			chromedp.Evaluate(
				`location.href = "/orders?window=31d&amount=" + (parseInt(document.querySelector("tr[data-row] data.money").value) / 100).toFixed(2)`, nil),
			becomes("location.search.includes('amount') && " + whole),
		}},
		{"exception", lead, "/exceptions?kind=amount_mismatch&state=open", 1250, follow(`tr[data-row] a[href^="/exceptions/"]`)},
		{"approvals", lead, "/approvals", 620, nil},
		{"approval", lead, "/approvals?state=waiting&action=accept_amount", 1050, follow(`tr[data-row] a[href^="/approvals/"]`)},
		{"audit", lead, "/audit?check=1", 900, nil},
		{"me", lead, "/me", 900, nil},
		{"login", "", "/login?lang={lang}", 620, nil},
	}
	ctx, _ := newBrowser(t, "127.0.0.1")
	for _, language := range []string{"en", "zh"} {
		in := ""
		for _, p := range pictures {
			if *only != "" && p.name != *only {
				continue
			}
			if p.operator != in && in != "" {
				run(t, ctx, signsOut()...)
			}
			if p.operator != in && p.operator != "" {
				run(t, ctx, signsIn(*demoAt, p.operator, *demoPass, "/"), reads(*demoAt, language, *theme))
			}
			in = p.operator
			run(t, ctx, emulation.SetDeviceMetricsOverride(1440, p.height, 1, false),
				chromedp.Navigate(*demoAt+strings.ReplaceAll(p.path, "{lang}", language)), chromedp.WaitReady("main"))
			run(t, ctx, p.then...)
			takeScreenshot(t, ctx, p.name+"-"+language)
			file := filepath.Join(*screenshots, p.name+"-"+language)
			shrink(t, file+".png")
			if p.name == "order" {
				tellStory(t, ctx, file+".png", file+".gif")
			}
		}
		if in != "" {
			run(t, ctx, signsOut()...)
		}
	}
}

func signsOut() []chromedp.Action {
	return []chromedp.Action{chromedp.Navigate(*demoAt + "/"), chromedp.Submit(`form[action="/logout"] button`), at("/login")}
}

// shrink writes a picture with 256 colours, and the file is a third as large: those that it has
// most of, and of each other hue the one that it has most of, since a red count among the greys of
// letters must stay red.
func shrink(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.RGBA]int{}
	b := from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			seen[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	var most []color.RGBA
	for c := range seen {
		most = append(most, c)
	}
	slices.SortFunc(most, func(a, b color.RGBA) int { return seen[b] - seen[a] })
	var palette color.Palette
	hues, rest := map[[3]uint8]bool{}, []color.RGBA{}
	for i, c := range most {
		hue := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}
		if i < 120 || !hues[hue] && len(palette) < 256 {
			palette, hues[hue] = append(palette, c), true
		} else {
			rest = append(rest, c)
		}
	}
	for _, c := range rest[:min(256-len(palette), len(rest))] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(b, palette)
	draw.Draw(to, b, from, b.Min, draw.Src)
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tellStory writes a picture of an order's story as a moving one, in which each frame shows one step more.
func tellStory(t *testing.T, ctx context.Context, from, to string) {
	t.Helper()
	var list struct {
		X, Y, Width int
		Ends        []int
	}
	run(t, ctx, chromedp.Evaluate(`(() => {
		const list = document.querySelector("ol.story"), box = list.getBoundingClientRect();
		return {x: Math.round(box.x), y: Math.round(box.y), width: Math.round(box.width),
			ends: Array.from(list.querySelectorAll(":scope > li[id]"), (li) => Math.round(li.getBoundingClientRect().bottom))};
	})()`, &list))
	file, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoded, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	page, ok := decoded.(*image.Paletted)
	if !ok || len(list.Ends) < 4 {
		t.Fatalf("%T with %d steps", decoded, len(list.Ends))
	}
	story := image.Rect(list.X, list.Y, list.X+list.Width, list.Ends[len(list.Ends)-1])
	if !story.In(page.Bounds()) {
		t.Fatalf("an order with %d steps is longer than the picture: take that of another one", len(list.Ends))
	}
	moving := gif.GIF{Config: image.Config{ColorModel: page.Palette, Width: story.Dx(), Height: story.Dy()}}
	empty := image.NewPaletted(image.Rect(0, 0, story.Dx(), story.Dy()), page.Palette)
	draw.Draw(empty, empty.Bounds(), image.NewUniform(page.At(list.X+1, list.Y+1)), image.Point{}, draw.Src)
	moving.Image, moving.Delay = append(moving.Image, empty), append(moving.Delay, 0)
	shown := 0
	for _, end := range list.Ends { // each frame is only what is new in it
		step := image.NewPaletted(image.Rect(0, shown, story.Dx(), end-story.Min.Y), page.Palette)
		draw.Draw(step, step.Bounds(), page, story.Min.Add(step.Rect.Min), draw.Src)
		moving.Image, moving.Delay = append(moving.Image, step), append(moving.Delay, 120) // hundredths of a second
		shown = step.Rect.Max.Y
	}
	moving.Delay[len(moving.Delay)-1] = 500
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, &moving); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 1<<20 {
		t.Errorf("%s has %d bytes, more than 1 MB", to, out.Len())
	}
	if err := os.WriteFile(to, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
