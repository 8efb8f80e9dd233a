// Package apitest holds what the API answers against its description, /openapi.yaml.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Contract is a description of the API. It is safe for concurrent use.
type Contract struct {
	Doc    *openapi3.T
	router routers.Router
}

// Read reads a description, and checks that it is a valid one.
func Read(ctx context.Context, text []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("read the description of the API: %w", err)
	}
	if err := doc.Validate(ctx); err != nil {
		return nil, fmt.Errorf("the description of the API is not valid: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("read the paths of the API: %w", err)
	}
	return &Contract{doc, router}, nil
}

// Exchange is a request with its answer.
type Exchange struct {
	Method, Path, Body string // Path with its query
	Status             int
	Header             http.Header
	Answer             string
}

// Contradictions are where an answer, or a request that was accepted, is not as described. There are none
// where the path is no described one.
func (c *Contract) Contradictions(ctx context.Context, x Exchange) (all []error) {
	at, err := url.Parse(x.Path)
	if err != nil {
		return nil // a test of bad paths
	}
	r := &http.Request{
		Method: x.Method, URL: at, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(x.Body)),
	}
	r = r.WithContext(ctx)
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		return nil // not JSON, or no route at all
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if x.Body != "" && x.Status < http.StatusBadRequest {
		if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
			all = append(all, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: x.Status, Header: x.Header, Options: in.Options,
		Body: io.NopCloser(bytes.NewReader([]byte(x.Answer))),
	}
	if err := openapi3filter.ValidateResponse(ctx, out); err != nil {
		all = append(all, err)
	}
	return all
}
