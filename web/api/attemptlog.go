package api

import (
	"cmp"
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

type logQuery struct {
	Merchant string `query:"merchant" doc:"The merchant's or the subscriber's code."`
	OrderNo  string `query:"order_no" doc:"The order's number."`
	Class    string `query:"class" doc:"How the attempt ended."`
	Status   string `query:"status" doc:"The HTTP status of the answer."`
	span
	Cursor string `query:"cursor" filter:"-" doc:"The value of next from the previous page."`
	Limit  int64  `query:"limit" kind:"limit" doc:"The number of rows on a page: 1 to 200, 50 by default."`
}

func (logQuery) choices() map[string][]string {
	return map[string][]string{"class": texts(notify.Classes)}
}

// attemptLog returns attempts at notifications, newest first.
func (s *handlers) attemptLog(c *fiber.Ctx) error {
	want, slice := s.sliceOf(c, console.AttemptList)
	slice.Uncounted = false
	err := cmp.Or(within(&slice, s.DB.Now()), resume(requestOf[logQuery](c).Cursor, want, &slice), want.Check())
	if err != nil {
		return err
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

// withoutQuery removes the part of a URL that may contain a merchant's secret.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// within completes the span; without to, it ends now.
func within(s *list.Slice, now int64) error {
	s.To = cmp.Or(s.To, now)
	s.From = cmp.Or(s.From, s.To-logSpan.Microseconds())
	if s.From >= s.To || s.To-s.From > logLongest.Microseconds() {
		return web.InvalidField("from", "use a time before to, by at most 31 days")
	}
	return nil
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
		h.Write([]byte(q.Get(field.Name) + "\x00"))
	}
	for _, n := range []int64{s.At.ID, s.From, s.To} {
		h.Write(strconv.AppendInt(nil, n, 36))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// resume sets the slice to the page of the cursor.
func resume(cursor string, q list.Query, s *list.Slice) error {
	if cursor == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 32 {
		return web.InvalidField("cursor", "use the value of next from the previous page")
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	s.At.ID, s.From, s.To = at(0), at(1), at(2)
	if uint64(at(3)) != logSum(q, *s) {
		return web.InvalidField("cursor", "use the value of next from the previous page, with the same filter")
	}
	return nil
}
