package console

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/list"
	"backstop/internal/order"
)

func TestACursorBelongsToItsListAndCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := cursors{[]byte("a key")}
	for _, want := range []list.Cursor{{ID: 1}, {ID: 1 << 62, Newer: true}} {
		text := s.text("/orders?status=paid", want)
		if got, err := s.parse("/orders?status=paid", text); err != nil || got != want {
			t.Errorf("%+v was read back as %+v, %v", want, got, err)
		}
		for name, wrong := range map[string]string{
			"of another filter": "/orders?status=failed", "of another list": "/callbacks?status=paid",
		} {
			if _, err := s.parse(wrong, text); err == nil {
				t.Errorf("a cursor %s is accepted", name)
			}
		}
		for i := range text {
			changed := []byte(text)
			changed[i] ^= 1
			if _, err := s.parse("/orders?status=paid", string(changed)); err == nil {
				t.Errorf("changed at %d it is accepted", i)
			}
		}
		if _, err := (cursors{[]byte("another key")}).parse("/orders?status=paid", text); err == nil {
			t.Error("a cursor signed with another key is accepted")
		}
	}
}

var pageLink = regexp.MustCompile(`data-(next|prev) href="([^"]+)"`)

// links are the pages beside this one.
func links(body string) map[string]string {
	found := map[string]string{}
	for _, m := range pageLink.FindAllStringSubmatch(body, -1) {
		found[m[1]] = html.UnescapeString(m[2])
	}
	return found
}

func TestPagesLeadToEachOtherAndATamperedOneIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	for i := range 120 {
		id := h.DB.NewID()
		o := order.Order{
			ID: id, OrderNo: fmt.Sprintf("NO%04d", i), OutTradeNo: fmt.Sprint(i), MerchantID: 1, SupplierID: 1, Amount: 100,
			Currency: "CNY", Exponent: 2, Status: order.Paid, Version: 1, CreatedAt: h.DB.Now(),
		}
		if _, err := h.DB.NewInsert().Model(&o).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := h.Page(t, cookie, "/orders?status=paid")
	second := h.Page(t, cookie, links(first.Body)["next"])
	third := h.Page(t, cookie, links(second.Body)["next"])
	if !strings.Contains(first.Body, "NO0119") || !strings.Contains(second.Body, "NO0069") || !strings.Contains(third.Body, "NO0000") ||
		links(third.Body)["next"] != "" {
		t.Error("the pages do not follow each other")
	}
	if back := h.Page(t, cookie, links(third.Body)["prev"]); !strings.Contains(back.Body, "NO0069") ||
		strings.Contains(back.Body, "NO0119") || strings.Contains(back.Body, "NO0019") {
		t.Error("the page before the third one is not the second one")
	}
	next := links(first.Body)["next"]
	for _, wrong := range []string{
		strings.Replace(next, "cursor=", "cursor=A", 1), strings.Replace(next, "paid", "failed", 1),
		strings.NewReplacer("/orders", "/notifications", "paid", "delivered").Replace(next),
	} {
		if got := h.Page(t, cookie, wrong+"&lang=en"); got.Status != http.StatusBadRequest ||
			!strings.Contains(got.Body, "page link was changed") {
			t.Errorf("%s: %d", wrong, got.Status)
		}
	}
}
