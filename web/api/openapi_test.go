package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"backstop/web/api/apitest"
	"backstop/web/webtest"
)

// contract is the served description, read once: each test serves the same routes.
var contract struct {
	sync.Once
	*apitest.Contract
	err error
}

func (h *harness) contract(t *testing.T) *apitest.Contract {
	t.Helper()
	contract.Do(func() {
		contract.Contract, contract.err = apitest.Read(t.Context(), []byte(h.Call(t, http.MethodGet, openAPIPath, "").Body))
	})
	if contract.err != nil {
		t.Fatal(contract.err)
	}
	return contract.Contract
}

// Api calls a route with a key. Whatever the test is about, its answer must be as the description of
// the API says, and so must a request that was accepted.
func (h *harness) Api(t *testing.T, key, method, path, body string) webtest.Answer {
	t.Helper()
	answer := h.Site.Api(t, key, method, path, body)
	for _, problem := range h.contradictions(t, method, path, body, answer) {
		t.Errorf("%s %s: not as described: %v\n%s", method, path, problem, answer.Body)
	}
	return answer
}

// contradictions are where an answer, or a request that was accepted, is not as described.
func (h *harness) contradictions(t *testing.T, method, path, body string, answer webtest.Answer) []error {
	t.Helper()
	return h.contract(t).Contradictions(t.Context(), apitest.Exchange{
		Method: method, Path: path, Body: body, Status: answer.Status, Header: answer.Header, Answer: answer.Body,
	})
}

func TestTheDescriptionOfTheAPIIsTrue(t *testing.T) {
	t.Parallel()
	h := open(t)
	const path = "/api/v1/orders"
	good := `{"out_trade_no": "A-1", "amount": 100, "currency": "CNY", "supplier": "wx", "subject": "two tickets"}`
	answer := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, path, good)
	if answer.Status != http.StatusCreated {
		t.Fatalf("%d: %s", answer.Status, answer.Body)
	}
	for what, wrong := range map[string]struct{ body, answer string }{
		"an answer without a field":   {good, strings.Replace(answer.Body, `"order_no"`, `"number"`, 1)},
		"a number that is a text":     {good, strings.Replace(answer.Body, `"amount":100`, `"amount":"100"`, 1)},
		"a request without a field":   {`{"out_trade_no": "A-1"}`, answer.Body},
		"a request with an odd field": {strings.Replace(good, "{", `{"odd": 1, `, 1), answer.Body},
	} {
		answer := answer
		answer.Body = wrong.answer
		if len(h.contradictions(t, http.MethodPost, path, wrong.body, answer)) == 0 {
			t.Errorf("%s is as described", what)
		}
	}
}

// exampleOf puts the examples of a schema's fields together; nil = there are none.
func exampleOf(s *openapi3.Schema) any {
	switch {
	case s.Example != nil:
		return s.Example
	case s.Items != nil:
		if one := exampleOf(s.Items.Value); one != nil {
			return []any{one}
		}
		return nil
	}
	all := map[string]any{}
	for name, field := range s.Properties {
		if example := exampleOf(field.Value); example != nil {
			all[name] = example
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// A merchant who sends the described examples is understood: none of them is refused for what it says.
func TestTheExamplesOfMerchantsRequestsAreTaken(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.contract(t)
	order := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, "/api/v1/orders",
		`{"out_trade_no": "A-1", "amount": 100, "currency": "CNY", "supplier": "wx", "subject": "tea"}`).Object(t)["order_no"].(string)
	sent := 0
	for path, item := range contract.Doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Tags[0] != "merchants" || o.RequestBody == nil {
				continue
			}
			schema := o.RequestBody.Value.Content["application/json"].Schema.Value
			example, _ := exampleOf(schema).(map[string]any)
			for _, name := range schema.Required {
				if example[name] == nil {
					t.Errorf("%s %s: %s has no example", method, path, name)
				}
			}
			if example == nil {
				continue // everything may be left out
			}
			body, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			key := webtest.KeyOfGalaxy
			if strings.HasPrefix(path, "/api/v1/payouts") {
				key = webtest.PayoutKeyOfGalaxy
			}
			answer := h.Api(t, key, method, strings.ReplaceAll(path, "{order_no}", order), string(body))
			// The payouts of a harness have no suppliers; the body was read by then.
			noSupplier := strings.HasPrefix(path, "/api/v1/payouts") && strings.Contains(answer.Body, `"field":"supplier"`)
			if answer.Status >= http.StatusBadRequest && answer.Status != http.StatusConflict && !noSupplier {
				t.Errorf("%s %s %s: %d %s", method, path, body, answer.Status, answer.Body)
			}
			sent++
		}
	}
	if sent < 4 {
		t.Errorf("only %d examples", sent)
	}
}
