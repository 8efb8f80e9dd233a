package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"backstop/views/reference"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
	"gopkg.in/yaml.v3"
)

// openAPIPath is where the description of the API is served.
const openAPIPath = "/openapi.yaml"

// docsPath is where the same description is served as a page.
const docsPath = "/docs"

// openAPIVersion is the version of the OpenAPI Specification that the description follows.
const openAPIVersion = "3.1.0"

// described are the routes that serve the description of the routes, made when it is first asked for: as
// a file, and as a page.
func (s *handlers) described(routes []web.Route, readers map[int]*reader) []web.Route {
	made := sync.OnceValue(func() object { return describe(routes, readers) })
	file := sync.OnceValue(func() []byte { return inYAML(made()) })
	page := sync.OnceValue(func() reference.Reference { return referenceOf(made()) })
	return []web.Route{
		{
			Method: http.MethodGet, Path: openAPIPath, Audience: web.ForAnyone,
			Handler: func(c *fiber.Ctx) error {
				c.Set(fiber.HeaderContentType, "application/yaml")
				return c.Send(file())
			},
		},
		{
			Method: http.MethodGet, Path: docsPath, Audience: web.ForAnyone,
			Handler: func(c *fiber.Ctx) error { return s.Render(c, http.StatusOK, reference.Page(s.Page(c), page())) },
		},
	}
}

func inYAML(o object) []byte {
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(o); err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return text.Bytes()
}

// object is a mapping whose keys keep their order.
type object []entry

type entry struct {
	key   string
	value any
}

// MarshalYAML writes the keys in their order.
func (o object) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range o {
		var key, value yaml.Node
		key.SetString(e.key)
		if err := value.Encode(e.value); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.key, err)
		}
		n.Content = append(n.Content, &key, &value)
	}
	return n, nil
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, e := range o {
		if i > 0 {
			text = append(text, ',')
		}
		key, err := json.Marshal(e.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", e.key, err)
		}
		text = append(append(append(text, key...), ':'), value...)
	}
	return append(text, '}'), nil
}

// with returns the object with one more key, unless its value is empty.
func (o object) with(key string, value any) object {
	if v := reflect.ValueOf(value); !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return o
	}
	return append(o, entry{key, value})
}

// description collects the schemas that others refer to.
type description struct {
	prefix  string   // of references: where the schemas are in the document
	names   []string // of schemas, in the order in which they were met
	schemas map[string]object
}

func newDescription(prefix string) *description {
	return &description{prefix: prefix, schemas: map[string]object{}}
}

// all returns the schemas that were referred to, by name.
func (d *description) all() (schemas object) {
	for _, name := range d.names {
		schemas = append(schemas, entry{name, d.schemas[name]})
	}
	return schemas
}

// describe returns the routes that speak JSON as an OpenAPI document: paths, parameters, bodies
// and answers are those by which requests are read and answers written. readers are those of the routes
// with a request, by their places. It panics on a route that has no summary: summaries are constants of
// the program.
func describe(routes []web.Route, readers map[int]*reader) object {
	d := newDescription("#/components/schemas/")
	var paths object
	for i, r := range routes {
		if r.Answer == nil {
			continue
		}
		path := inBraces(r.Path)
		at := slices.IndexFunc(paths, func(e entry) bool { return e.key == path })
		if at < 0 {
			at, paths = len(paths), append(paths, entry{path, object{}})
		}
		paths[at].value = append(paths[at].value.(object), entry{strings.ToLower(r.Method), d.operation(r, readers[i])})
	}
	failure := d.schema(reflect.TypeFor[web.ErrorBody]())
	return object{
		{"openapi", openAPIVersion},
		{"info", object{
			{"title", "Backstop"},
			{"version", "1"},
			{"description", "The API of merchants, and of those who monitor and control the installation."},
		}},
		{"paths", paths},
		{"components", object{
			{"schemas", d.all()},
			{"responses", object{{"Refused", object{
				{"description", "Refused, or not known whether it was done: the code says which."}, {"content", asJSON(failure)},
			}}}},
			{"securitySchemes", securitySchemes},
		}},
	}
}

// Names of the security schemes.
const (
	merchantKey = "merchantKey"
	payoutKey   = "payoutKey"
	tokenKey    = "token"
)

var securitySchemes = object{
	{merchantKey, bearer("The api_key of a merchant.")},
	{payoutKey, bearer("The payout_key of a merchant, from one of its payout_ips.")},
	{tokenKey, bearer("The token of a service with the scope that is named, or the personal token of an operator whose role may do it.")},
}

func bearer(what string) object {
	return object{{"type", "http"}, {"scheme", "bearer"}, {"description", what}}
}

var keys = map[web.MerchantKey][]string{
	web.APIKey: {merchantKey}, web.PayoutKey: {payoutKey}, web.EitherKey: {merchantKey, payoutKey},
}

var pathParameter = regexp.MustCompile(`:(\w+)`)

// inBraces writes a path's parameters as OpenAPI does.
func inBraces(path string) string { return pathParameter.ReplaceAllString(path, "{$1}") }

// operation describes one route.
func (d *description) operation(r web.Route, read *reader) object {
	summary := summaryOf(r)
	if summary == "" {
		panic("openapi: no summary of " + r.Method + " " + r.Path)
	}
	var parameters []object
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		parameters = append(parameters, object{
			{"name", m[1]},
			{"in", "path"},
			{"required", true},
			{"schema", object{{"type", "string"}}.with("enum", pathChoices[m[1]])},
		})
	}
	o := object{{"operationId", operationID(r)}, {"summary", summary}, {"tags", []string{audience(r)}}}
	o = o.with("description", permitted(r))
	var body any
	switch {
	case read == nil:
	case read.query:
		for _, p := range read.params {
			parameters = append(parameters, object{{"name", p.Name}, {"in", "query"}}.
				with("required", p.Required).with("description", p.Doc).with("schema", queryField(p)))
		}
	default:
		body = object{}.with("required", !read.optional).with("content", asJSON(fieldsOf(read.params, !read.lenient)))
	}
	o = o.with("parameters", parameters).with("requestBody", body)
	return append(o,
		entry{"responses", object{
			{"2XX", object{{"description", "Done, or accepted."}, {"content", d.answers(r, read)}}},
			{"default", object{{"$ref", "#/components/responses/Refused"}}},
		}},
		entry{"security", security(r)})
}

// answers are the forms in which a route answers.
func (d *description) answers(r web.Route, read *reader) object {
	schema := object{}
	if several, ok := r.Answer.(web.OneOf); ok {
		var all []object
		for _, answer := range several {
			all = append(all, d.schema(reflect.TypeOf(answer)))
		}
		schema = schema.with("anyOf", all)
	} else {
		schema = d.schema(reflect.TypeOf(r.Answer))
	}
	content := asJSON(schema)
	if read != nil && slices.ContainsFunc(read.params, func(p param) bool { return p.Name == "format" && slices.Contains(p.Choices, "csv") }) {
		content = append(content, entry{"text/csv", object{{"schema", object{{"type", "string"}}}}})
	}
	return content
}

func asJSON(schema object) object {
	return object{{fiber.MIMEApplicationJSON, object{{"schema", schema}}}}
}

// operationID names an operation by its method and path: getOrdersByOrderNo.
func operationID(r web.Route) string {
	id := strings.ToLower(r.Method)
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Path, "/api/v1"), "/") {
		if name, parameter := strings.CutPrefix(part, ":"); parameter {
			part = "by-" + name
		}
		for word := range strings.FieldsFuncSeq(part, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			id += capital(word)
		}
	}
	return id
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// audience is the tag under which a route is listed.
func audience(r web.Route) string {
	switch r.Audience {
	case web.ForMerchant:
		return "merchants"
	case web.ForMonitor:
		return "administration"
	default:
		return "installation"
	}
}

// permitted says which scope or permission a route needs; "" = none.
func permitted(r web.Route) string {
	switch {
	case r.Audience != web.ForMonitor:
		return ""
	case r.Person || r.Scope == "":
		return fmt.Sprintf("Only operators with the permission `%s`.", r.Permission)
	default:
		return fmt.Sprintf("Services with the scope `%s`, and operators with the permission `%s`.", r.Scope, r.Permission)
	}
}

// security lists the keys of which a route takes one.
func security(r web.Route) []object {
	names := []string{tokenKey}
	switch r.Audience {
	case web.ForMerchant:
		names = keys[r.Key]
	case web.ForMonitor:
	default:
		return []object{}
	}
	all := make([]object, len(names))
	for i, name := range names {
		all[i] = object{{name, []string{}}}
	}
	return all
}
