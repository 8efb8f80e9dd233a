// Package ui is what the console's pages are made of: the layout, lists, charts,
// states and other pieces. Values in, HTML out: it asks nothing of the database.
package ui

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/money"
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Page is what every page needs: who looks at it, and how.
type Page struct {
	Language string // "zh" or "en"
	Theme    string // "light", "dark", or "auto": the browser's
	Compact  bool   // rows of lists are as low as they can be
	Zone     *time.Location
	Now      time.Time
	Path     string // of this page with its query, to come back to
	User     string // empty = nobody is signed in
	UserID   int64  // of the operator; 0 = nobody is signed in
	Roles    access.Roles
	Limited  bool       // to some merchants
	Unread   Unread     // messages in the operator's inbox
	Menu     []MenuItem // what the person may open
	Names    Names      // of merchants and suppliers; nil = they are shown by code
	// FieldLabel is what forms call a field of a setting, such as "merchant m1" and "notify.urls"; zero = no
	// form has it.
	FieldLabel func(object, path string) text.Text
	// Environment names the installation: "production", "staging", "test"; "" = it has no name.
	Environment string
	Shadow      bool // nobody is notified, and no supplier is called for what moves money
	File        func(name string) string
	Texts       text.Catalog // of what rows keep by a code
	Version     string
	Live        bool // the page keeps itself current
	// Decisions are the forms of what may be decided about the page's object, and Decides their names;
	// nil = nothing may be.
	Decisions templ.Component
	Decides   []string
	// Follows is what the page of an object says about following it; nil = it does not.
	Follows templ.Component
	Parts   bool // links of the page change a part of it
	// RedisDown and Database report trouble; Frozen: no act is possible because of it.
	RedisDown, Frozen bool
	AskCode           bool   // the second factor was given more than 10 minutes ago
	Passkey           bool   // it can be a passkey too
	Provider          string // host of where the person signs in, instead of giving a second factor here; "" = nowhere
	Database          DatabaseState
	// Paused are the pauses that affect what the page shows.
	Paused []PausedQueue
}

// PausedQueue is work that an operator has paused.
type PausedQueue struct {
	Name, By, Reason string
	Since            int64  // Unix µs
	Path             string // of the queue's page; "" = the viewer may not open it
}

// MenuItem is one line of the navigation.
type MenuItem struct {
	Path    string
	Icon    string
	Label   text.Text
	Current bool
	// Count is how many rows wait for the viewer; More: there are more than that. Rows is where they are.
	Count int64
	More  bool
	Rows  string
}

// T is a text in the person's language.
func (p *Page) T(w text.Text, args ...any) string {
	text := w.In(p.Language)
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// Tag is the language for the page's root.
func (p *Page) Tag() string {
	if p.Language == "en" {
		return "en"
	}
	return "zh-CN"
}

func (p *Page) icon(name string) string { return p.File("icons.svg") + "#" + name }

// Times are shown in the user's time zone, which the top bar names.

// At is a moment, in Unix µs, in the person's zone.
func (p *Page) At(us int64) time.Time { return time.UnixMicro(us).In(p.Zone) }

// Short is for lists: the time of today, else the day too.
func (p *Page) Short(us int64) string {
	t, now := p.At(us), p.Now.In(p.Zone)
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05.000")
	case t.Year() == now.Year():
		return t.Format("01-02 15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// Clock is the time of the day with its milliseconds.
func (p *Page) Clock(us int64) string { return p.At(us).Format("15:04:05.000") }

// Day is the day alone.
func (p *Page) Day(us int64) string { return p.At(us).Format(time.DateOnly) }

// Full has the day, the milliseconds and the zone.
func (p *Page) Full(us int64) string {
	t := p.At(us)
	return t.Format("2006-01-02 15:04:05.000 ") + p.zone(t.Format("MST"))
}

// Hover is UTC beside the person's zone.
func (p *Page) Hover(us int64) string {
	return p.Full(us) + " = " + time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// Machine is a moment for the attribute datetime.
func Machine(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z") }

// Away is how far a moment is from now. It is only shown beside the moment itself.
func (p *Page) Away(us int64) string {
	d := time.UnixMicro(us).Sub(p.Now)
	if d < 0 {
		return p.T(tAgo, p.Rough(-d))
	}
	return p.T(tIn, p.Rough(d))
}

// Rough is Took in whole seconds, for what is not known more exactly.
func (p *Page) Rough(d time.Duration) string {
	if d < time.Minute {
		return p.T(tSeconds, int(d.Seconds()))
	}
	return p.Took(d)
}

// Took writes 184 ms, 3.204 s, 3 m 12 s, 5 h 02 m, 3 d 04 h; in Chinese 3 分 12 秒,
// 5 小时 02 分, 3 天 04 小时.
func (p *Page) Took(d time.Duration) string {
	switch {
	case 0 < d && d < time.Millisecond:
		return p.Fine(d.Microseconds())
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + " s"
	case d < time.Hour:
		return p.T(tMinutes, int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return p.T(tHours, int(d.Hours()), int(d.Minutes())%60)
	}
	return p.T(tDays, int(d.Hours())/24, int(d.Hours())%24)
}

// Fine writes a duration in µs as Took does, and what is below 10 ms finer.
func (p *Page) Fine(us int64) string {
	switch {
	case us == 0:
		return "0 s"
	case us < 1000:
		return strconv.FormatInt(us, 10) + " µs"
	case us < 10_000:
		return strings.TrimSuffix(strconv.FormatFloat(float64(us)/1000, 'f', 1, 64), ".0") + " ms"
	}
	return p.Took(time.Duration(us) * time.Microsecond)
}

// zoneName is the zone with its offset now.
func (p *Page) zoneName() string {
	return p.zone(p.Zone.String()) + p.Now.In(p.Zone).Format(" -07:00")
}

// zone is China's time by its name, and any other zone as it is called: CST is several zones.
func (p *Page) zone(called string) string {
	if p.Zone.String() == "Asia/Shanghai" {
		return p.T(tChina)
	}
	return called
}

var tChina = text.Text{ZH: "北京时间", EN: "Asia/Shanghai"}

// symbols of the currencies that have one, always shown with the code.
var symbols = map[string]string{
	"CNY": "¥", "JPY": "¥", "USD": "$", "HKD": "HK$", "EUR": "€", "GBP": "£", "KRW": "₩", "INR": "₹",
	"TWD": "NT$",
}

// Symbol is a currency's, empty if it has none.
func Symbol(currency string) string { return symbols[currency] }

// Amount is a sum with its symbol and grouped by three: −¥1,234.50.
func Amount(minor int64, currency string) string {
	text := money.Format(minor, currency)
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(digits, ".")
	out := Symbol(currency) + grouped(whole)
	if dotted {
		out += "." + fraction
	}
	if negative {
		return "−" + out
	}
	return out
}

// Count is a number grouped by three.
func Count(n int64) string { return grouped(strconv.FormatInt(n, 10)) }

// grouped puts a comma before every third digit from the right.
func grouped(digits string) string {
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Tail shortens an id for a list; its title and copy button have the whole of it.
func Tail(id string) string {
	if len(id) <= 14 {
		return id
	}
	return "…" + id[len(id)-12:]
}

// Query is the filter of a list, as in the URL.
type Query struct {
	Path   string
	Values url.Values
}

// with is the same list with some parameters changed; "" removes one. Every
// change of a filter begins at the newest row.
func (q Query) with(pairs ...string) string {
	v := url.Values{}
	for name, values := range q.Values {
		if name != "cursor" && len(values) > 0 && values[0] != "" {
			v.Set(name, values[0])
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	if len(v) == 0 {
		return q.Path
	}
	return q.Path + "?" + v.Encode()
}

func (q Query) get(name string) string { return q.Values.Get(name) }

// Texts of these pieces.
var (
	tAgo     = text.Text{ZH: "%s前", EN: "%s ago"}
	tSeconds = text.Text{ZH: "%d 秒", EN: "%d s"}
	tMinutes = text.Text{ZH: "%d 分 %02d 秒", EN: "%d m %02d s"}
	tHours   = text.Text{ZH: "%d 小时 %02d 分", EN: "%d h %02d m"}
	tDays    = text.Text{ZH: "%d 天 %02d 小时", EN: "%d d %02d h"}
	tIn      = text.Text{ZH: "%s后", EN: "in %s"}
)
