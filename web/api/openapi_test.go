package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"backstop/web/webtest"
)

// contract is the served description, read once: each test serves the same routes.
var contract struct {
	sync.Once
	router routers.Router
	err    error
}

func (h *harness) contract(t *testing.T) routers.Router {
	t.Helper()
	contract.Do(func() {
		served := h.Call(t, http.MethodGet, openAPIPath, "")
		var doc *openapi3.T
		if doc, contract.err = openapi3.NewLoader().LoadFromData([]byte(served.Body)); contract.err != nil {
			return
		}
		if contract.err = doc.Validate(t.Context()); contract.err != nil {
			return
		}
		contract.router, contract.err = gorillamux.NewRouter(doc)
	})
	if contract.err != nil {
		t.Fatal(contract.err)
	}
	return contract.router
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
func (h *harness) contradictions(t *testing.T, method, path, body string, answer webtest.Answer) (all []error) {
	t.Helper()
	router := h.contract(t)
	at, err := url.Parse(path)
	if err != nil {
		return nil // a test of bad paths
	}
	r := &http.Request{Method: method, URL: at, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
	r = r.WithContext(t.Context())
	route, params, err := router.FindRoute(r)
	if err != nil {
		return nil // not JSON, or no route at all
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if body != "" && answer.Status < http.StatusBadRequest {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			all = append(all, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: answer.Status, Header: answer.Header, Options: in.Options,
		Body: io.NopCloser(bytes.NewReader([]byte(answer.Body))),
	}
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		all = append(all, err)
	}
	return all
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
