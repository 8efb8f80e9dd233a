package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var (
	linked = regexp.MustCompile(`href="#([^"]+)"`)
	placed = regexp.MustCompile(`id="([^"]+)"`)
)

func TestTheReferenceShowsEveryRoute(t *testing.T) {
	t.Parallel()
	h := open(t)
	page := h.Call(t, http.MethodGet, docsPath+"?lang=en", "").Body
	shown := 0
	for _, r := range h.Server.Routes() {
		if r.Answer == nil || !strings.HasPrefix(r.Path, "/api/") {
			continue
		}
		if heading := `<h3 class="mono">` + r.Method + " " + inBraces(r.Path) + "</h3>"; !strings.Contains(page, heading) {
			t.Errorf("the page has no %s", heading)
		}
		shown++
	}
	if shown < 60 {
		t.Errorf("only %d routes", shown)
	}
	places := map[string]bool{}
	for _, id := range placed.FindAllStringSubmatch(page, -1) {
		if places[id[1]] {
			t.Errorf("%s is on the page twice", id[1])
		}
		places[id[1]] = true
	}
	for _, to := range linked.FindAllStringSubmatch(page, -1) {
		if !places[to[1]] {
			t.Errorf("a link leads to #%s, which is not on the page", to[1])
		}
	}
	if zh := h.Call(t, http.MethodGet, docsPath+"?lang=zh", "").Body; !strings.Contains(zh, "商户接口") {
		t.Error("the page is not in Chinese")
	}
}

func TestARefusalLinksToItsCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	page := h.Call(t, http.MethodGet, docsPath, "").Body
	refused := h.Api(t, "", http.MethodGet, "/api/v1/orders", "")
	to := regexp.MustCompile(`^</docs#(error-unauthorized)>; rel="help"$`).FindStringSubmatch(refused.Header.Get("Link"))
	if refused.Status != http.StatusUnauthorized || to == nil || !strings.Contains(page, `id="`+to[1]+`"`) {
		t.Errorf("%d with Link %q", refused.Status, refused.Header.Get("Link"))
	}
}
