package api

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/sweep"
)

func TestASweepIsBegunAndShown(t *testing.T) {
	t.Parallel()
	h := open(t)
	const path = "/api/v1/admin/sweeps"
	reads, runs := h.token(t, "monitor"), h.token(t, "monitor,compensate")
	if got := strings.TrimSpace(h.Api(t, reads, "GET", path, "").Body); got != `{"items":[],"next":null}` {
		t.Errorf("none: %s", got)
	}
	for body, want := range map[string]string{
		`{"reason":"why"}`: "422 invalid_field reason", `{}`: "422 invalid_field reason",
		`{"reason":"the night was lost","days":0}`:  "422 invalid_field days",
		`{"reason":"the night was lost","days":91}`: "422 invalid_field days",
		`{"reason":"the night was lost","weeks":1}`: "422 invalid_field weeks",
	} {
		if got := h.Api(t, runs, "POST", path, body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := h.Api(t, reads, "POST", path, `{"reason":"the night was lost"}`).Problem(); got != "403 forbidden scope" {
		t.Errorf("without the scope: %s", got)
	}
	begun := h.Api(t, runs, "POST", path, `{"reason":"the night was lost","days":7}`)
	id, _ := begun.Object(t)["id"].(string)
	if begun.Status != 202 || id == "" {
		t.Fatalf("%d %s", begun.Status, begun.Body)
	}
	if got := h.Api(t, runs, "POST", path, `{"reason":"the night was lost"}`).Problem(); got != "409 running" {
		t.Errorf("a second one: %s", got)
	}
	one := h.Api(t, reads, "GET", path+"/"+id, "").Object(t)
	if one["state"] != "running" || !strings.HasPrefix(one["by"].(string), "token:") || one["looked_at"] != 0.0 ||
		fmt.Sprint(one["pushed"], one["differences"]) != "[] []" {
		t.Errorf("one: %v", one)
	}
	for _, name := range []string{"ended_at", "node", "p99_ms"} {
		if v, there := one[name]; !there || v != nil {
			t.Errorf("%s is %v (%t), want null", name, v, there)
		}
	}
	_, err := h.DB.NewRaw(
		"UPDATE sweeps SET state = ?, ended_at = began_at + 1, node = 'n1', looked_at = 12, p99_ms = 7, pushed = ?, differences = ? WHERE id = ?", sweep.Done,
		`[{"what":"orders","count":3}]`, `[{"what":"I5","detail":"stock adds up: 1 violations"}]`, id).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.Api(t, runs, "POST", path, `{"reason":"the night was lost"}`)
	first := h.Api(t, reads, "GET", path+"?limit=1", "").Object(t)
	if items := first["items"].([]any); len(items) != 1 || items[0].(map[string]any)["state"] != "running" || first["next"] == nil {
		t.Fatalf("the first page: %v", first)
	}
	second := h.Api(t, reads, "GET", path+"?limit=1&cursor="+first["next"].(string), "").Object(t)
	one = second["items"].([]any)[0].(map[string]any)
	if second["next"] != nil || one["id"] != id || one["p99_ms"] != 7.0 || one["node"] != "n1" ||
		fmt.Sprint(one["pushed"]) != "[map[count:3 what:orders]]" ||
		fmt.Sprint(one["differences"]) != "[map[detail:stock adds up: 1 violations what:I5]]" {
		t.Errorf("the second page: %v", second)
	}
	for _, wrong := range []string{"/7", "/x", "/0"} {
		if got := h.Api(t, reads, "GET", path+wrong, "").Problem(); got != "404 not_found" {
			t.Errorf("%s: %s", wrong, got)
		}
	}
}
