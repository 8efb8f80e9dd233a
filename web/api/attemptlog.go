package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"net/url"
	"strconv"
	"time"

	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// Limits of the time span of one query of the log.
const (
	logSpan    = 24 * time.Hour      // default
	logLongest = 31 * 24 * time.Hour // maximum
)

// attemptView is one attempt in the monitoring API.
type attemptView struct {
	ID           string  `json:"id"`
	Notification string  `json:"notification"`
	Type         string  `json:"type"`
	OrderNo      *string `json:"order_no"`
	Merchant     string  `json:"merchant"`
	Attempt      int64   `json:"attempt"`
	URL          string  `json:"url"`
	Class        string  `json:"class"`
	Status       *int    `json:"status"` // of the answer; null = there was none
	StartedAt    string  `json:"started_at"`
	TookMS       float64 `json:"took_ms"`
	Node         string  `json:"node"`
	Error        *string `json:"error"`
}

// attemptLog returns attempts at notifications, newest first.
func (s *handlers) attemptLog(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("merchant", "order_no", "class", "status", "from", "to", "cursor", "limit")
	want, wrong := list.Parse(console.AttemptList, list.All(), f.Text)
	f.OneOf("class", classes())
	slice := list.Slice{Rows: f.Limit()}
	slice.From, slice.To = spanOf(f, s.DB.Now())
	resume(f, want, &slice)
	if f.Err == nil {
		f.Err = wrong
	}
	if f.Err != nil {
		return f.Err
	}
	if _, err := s.recipientID(c.UserContext(), want.Get("merchant")); err != nil {
		return err
	}
	found, err := s.Console.Attempts(c.UserContext(), want, slice)
	if err != nil {
		return err
	}
	out := pageOf(found.Rows, 0, func(a console.Attempt) attemptView {
		v := attemptView{
			ID: strconv.FormatInt(a.ID, 10), Notification: a.PublicID, Type: a.EventType, OrderNo: orNull(a.OrderNo),
			Merchant: a.Merchant, Attempt: a.Number, URL: withoutQuery(a.URL), Class: string(a.Class),
			StartedAt: notify.Stamp(a.StartedAt), TookMS: float64(a.TookUS) / 1000, Node: a.Node, Error: orNull(a.Error),
		}
		if a.HTTPStatus != 0 {
			v.Status = &a.HTTPStatus
		}
		return v
	})
	out.Next = orNull(logCursor(want, slice, found.Older.ID))
	return c.JSON(out)
}

func classes() []string {
	all := make([]string, len(notify.Classes))
	for i, class := range notify.Classes {
		all[i] = string(class)
	}
	return all
}

// withoutQuery removes the part of a URL that may contain a merchant's secret.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// spanOf reads from and to; without to, the span ends now.
func spanOf(f *web.Filter, now int64) (from, to int64) {
	to = moment(f, "to", now)
	from = moment(f, "from", to-logSpan.Microseconds())
	if f.Err == nil && (from >= to || to-from > logLongest.Microseconds()) {
		f.Blame("from", "use a time before to, by at most 31 days")
	}
	return from, to
}

func moment(f *web.Filter, name string, otherwise int64) int64 {
	text := f.Text(name)
	if text == "" {
		return otherwise
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.Blame(name, "use RFC 3339, such as 2026-11-21T08:00:00Z")
	}
	return t.UnixMicro()
}

// A cursor of the log contains the last id and the span, which must not move between the pages
// of one query, and a checksum over both and the filter, so that a truncated cursor, or one
// used with another filter, is refused. It gives access to nothing that the caller may not see
// anyway.

// logCursor returns the cursor of the next page; "" = there is none.
func logCursor(q list.Query, s list.Slice, before int64) string {
	if before == 0 {
		return ""
	}
	s.At.ID = before
	b := make([]byte, 0, 32)
	for _, n := range []uint64{uint64(s.At.ID), uint64(s.From), uint64(s.To), logSum(q, s)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// logSum ignores the page size, which may differ between pages.
func logSum(q list.Query, s list.Slice) uint64 {
	h := fnv.New64a()
	for _, field := range q.Spec.Fields {
		h.Write([]byte(q.Get(field.Word) + "\x00"))
	}
	for _, n := range []int64{s.At.ID, s.From, s.To} {
		h.Write(strconv.AppendInt(nil, n, 36))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// resume sets the slice to the page of the cursor.
func resume(f *web.Filter, q list.Query, s *list.Slice) {
	text := f.Text("cursor")
	if text == "" {
		return
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 32 {
		f.Blame("cursor", "use the value of next from the previous page")
		return
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	s.At.ID, s.From, s.To = at(0), at(1), at(2)
	if uint64(at(3)) != logSum(q, *s) {
		f.Blame("cursor", "use the value of next from the previous page, with the same filter")
	}
}
