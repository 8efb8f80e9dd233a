package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/webtest"
)

func TestANoteReachesWhomItMentions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		author, reader := h.SignIn(t, access.Support), h.SignIn(t, access.Viewer)
		if _, err := h.Operators.Add(t.Context(), "gone", access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		if err := h.Operators.Disable(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		exception := fmt.Sprint(number(t, h.DB, "SELECT id FROM exceptions WHERE kind = 'amount_mismatch'"))
		for i, page := range []string{orderOne, "/exceptions/" + exception} {
			act := page + "/note"
			if i == 1 {
				act = page + "/comment"
			}
			write := func(note string) webtest.Answer {
				t.Helper()
				return h.Post(t, author, act, "form_key", fmt.Sprint("key-", h.DB.NewID()), "reason", note)
			}
			for _, name := range []string{"nobody", "gone"} {
				note := `please look, @` + name + ` "<b>`
				got := write(note)
				if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "@"+name) ||
					!strings.Contains(got.Body, "please look") || strings.Contains(got.Body, `"<b>`) {
					t.Errorf("%s: a note to %s: %d, the note is there again: %t", page, name, got.Status,
						strings.Contains(got.Body, "please look"))
				}
			}
			if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action IN ('order.note', 'exception.note')"); n != 2*int64(i) {
				t.Errorf("%s: %d notes are stored, want %d", page, n, 2*i)
			}
			if got := write("@the.viewer, and me @the.support: call 13812345678"); got.Status != http.StatusSeeOther {
				t.Fatalf("%s: a note: %d %s", page, got.Status, got.Body)
			}
			if got := write("nobody is meant by pay@shop.test"); got.Status != http.StatusSeeOther {
				t.Fatalf("%s: a note: %d %s", page, got.Status, got.Body)
			}
		}
		if mine, own := h.unread(t, "the.viewer"), h.unread(t, "the.support"); len(mine) != 2 || len(own) != 0 {
			t.Fatalf("%d messages to the reader, %d to the author", len(mine), len(own))
		}
		got := h.Page(t, reader, "/inbox?lang=en")
		for _, phrase := range []string{
			"the.support mentioned you in a note: Order 2026112000000001", "Mark all as read", "Inbox, 2 unread",
			`value="/exceptions/` + exception + `"`,
		} {
			if !strings.Contains(got.Body, phrase) {
				t.Errorf("the inbox lacks %q", phrase)
			}
		}
		if strings.Contains(got.Body, "13812345678") || strings.Contains(h.Page(t, author, "/inbox").Body, "Order 2026112000000001") {
			t.Error("an inbox shows personal data, or another person's messages")
		}
		first := h.unread(t, "the.viewer")[0]
		if got := h.Post(t, author, "/inbox/read", "message", fmt.Sprint(first.ID)); got.Status != http.StatusSeeOther ||
			len(h.unread(t, "the.viewer")) != 2 {
			t.Errorf("another person marks a message as read: %d", got.Status)
		}
		got = h.Post(t, reader, "/inbox/read", "message", fmt.Sprint(first.ID), "to", orderOne)
		if got.Header.Get("Location") != orderOne || len(h.unread(t, "the.viewer")) != 1 {
			t.Errorf("opening a message leads to %q, %d stay unread", got.Header.Get("Location"), len(h.unread(t, "the.viewer")))
		}
		if got := h.Post(t, reader, "/inbox/read", "message", fmt.Sprint(first.ID), "to",
			"//evil.test"); got.Header.Get("Location") != "/" {
			t.Errorf("a message leads to %q", got.Header.Get("Location"))
		}
		h.Post(t, reader, "/inbox/read", "message", fmt.Sprint(h.unread(t, "the.viewer")[0].ID), "all", "yes")
		if bell := h.Call(t, http.MethodGet, "/_/bell?lang=en", "", "Cookie", reader, "HX-Request",
			"true"); len(h.unread(t, "the.viewer")) != 0 || strings.Contains(bell.Body, "count") {
			t.Errorf("all are read, and the bell is %s", bell.Body)
		}
	})
}
