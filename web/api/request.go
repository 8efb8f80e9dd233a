package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"backstop/internal/base/field"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// param is one field of a request. Reading it, its checks, its errors and its line in the
// reference are all derived from its declaration.
type param struct {
	field.Field
	Fields []param // of an object, or of the entries of a list
}

// chooser is a request with fields that take one of some words.
type chooser interface{ choices() map[string][]string }

// checked is an object with rules that its tags cannot tell.
type checked interface{ check(f *form) }

// lenient is a request that ignores other parameters.
type lenient interface{ ignoresOthers() }

// mayBeEmpty is part of a request whose body may be left out, although it then lacks what is required.
type mayBeEmpty struct{}

func (mayBeEmpty) emptyBody() {}

// reader reads one kind of request. Its tags are read once, when the routes are listed.
type reader struct {
	of       reflect.Type // a struct, or a map of an act's values
	params   []param
	known    []string
	query    bool // from the URL, else from the body
	lenient  bool
	optional bool // no body is an empty one
}

// readerOf returns the reader of a request: a struct, or the fields of an act. limits are those that
// are settings of the program.
func readerOf(request any, limits map[string]int64) *reader {
	r := &reader{of: reflect.TypeOf(request), query: true, optional: true}
	if fields, ok := request.([]field.Field); ok {
		r.of = reflect.TypeFor[map[string]any]()
		for _, f := range fields {
			r.params = append(r.params, param{Field: f})
		}
		r.query = false
	} else {
		r.params = paramsOf(r.of)
	}
	words := map[string][]string{}
	if c, ok := request.(chooser); ok {
		words = c.choices()
	}
	for i := range r.params {
		p := &r.params[i]
		p.Max = cmp.Or(limits[p.Name], p.Max)
		if words[p.Name] != nil {
			if p.Choices = words[p.Name]; !p.Query {
				p.Kind = field.Choice
			}
		}
		r.query, r.optional = p.Query, r.optional && !p.Required
	}
	if _, ok := request.(interface{ emptyBody() }); ok {
		r.optional = true
	}
	r.known = names(r.params)
	_, r.lenient = request.(lenient)
	return r
}

func paramsOf(t reflect.Type) (all []param) {
	for _, f := range field.Of(t) {
		p := param{Field: f}
		of := t.FieldByIndex(f.Index).Type
		if of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			p.Fields = paramsOf(of)
		}
		all = append(all, p)
	}
	return all
}

func names(all []param) []string {
	words := make([]string, len(all))
	for i, p := range all {
		words[i] = p.Name
	}
	return words
}

// braces is how an object is written.
func (p *param) braces() string { return "{" + strings.Join(names(p.Fields), ", ") + "}" }

// localRequest is where a request is for its handler.
type localRequest struct{}

// request is one that was read: a pointer to its struct.
type request struct {
	*reader
	to reflect.Value
}

// requestOf returns the request that the route declares.
func requestOf[T any](c *fiber.Ctx) *T {
	return c.Locals(localRequest{}).(*request).to.Interface().(*T)
}

// before reads the request, then calls the route's handler.
func (r *reader) before(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		to := reflect.New(r.of)
		read := r.readBody
		if r.query {
			read = r.readQuery
		}
		if err := read(c, to); err != nil {
			return err
		}
		c.Locals(localRequest{}, &request{r, to})
		return next(c)
	}
}

func (r *reader) readBody(c *fiber.Ctx, to reflect.Value) error {
	return r.parse(c.Request().Body(), to)
}

// parse reads a body into a new request.
func (r *reader) parse(body []byte, to reflect.Value) error {
	if r.optional && strings.TrimSpace(string(body)) == "" {
		body = []byte("{}")
	}
	f, err := readForm(body)
	if err != nil {
		return err
	}
	if !r.lenient {
		f.onlyKnown(r.known)
	}
	if values, ok := to.Interface().(*map[string]any); ok {
		*values = f.values(r.params)
	} else {
		f.fill(to, r.params)
	}
	return f.err
}

func (r *reader) readQuery(c *fiber.Ctx, to reflect.Value) error {
	f := web.ReadFilter(c)
	if !r.lenient {
		f.Only(r.known...)
	}
	for i := range r.params {
		switch p, into := &r.params[i], to.Elem().FieldByIndex(r.params[i].Index); p.Kind {
		case field.Cursor:
			into.SetInt(f.Cursor())
		case field.Limit:
			into.SetInt(int64(f.Limit()))
		case field.Time:
			into.SetInt(momentOf(f, p.Name))
		case field.Flag:
			into.SetBool(f.Yes(p.Name, p.Default == "true"))
		case field.ASCII:
			into.SetString(c.Query(p.Name))
			if problem := p.Problem(into).EN; problem != "" {
				f.Blame(p.Name, problem)
			}
		default:
			into.SetString(f.Text(p.Name))
			if len(p.Choices) > 0 {
				f.OneOf(p.Name, p.Choices)
			}
		}
	}
	return f.Err
}

// fill reads the fields into the struct that to points to.
func (f *form) fill(to reflect.Value, params []param) {
	for i := range params {
		p := &params[i]
		switch into := to.Elem().FieldByIndex(p.Index); {
		case p.Kind == field.Number || p.Kind == field.Money:
			into.SetInt(f.number(p.Name, p.Required, p.Min, p.Max))
		case p.Kind == field.Flag:
			into.SetBool(f.flag(p.Name))
		case p.Kind == field.Raw:
			if raw, ok := f.raw(p.Name, p.Required); ok {
				into.SetBytes(raw)
			}
		case p.Kind == field.Object:
			if raw, ok := f.raw(p.Name, p.Required); ok {
				into.Set(reflect.New(into.Type().Elem()))
				f.object(p.Name, raw, into, p)
			}
		case p.Fields != nil:
			f.list(into, p)
		default:
			f.plain(into, p)
		}
	}
}

// maxText is longer than any text of an act, in characters: its Kind says what it allows.
const maxText = 16_000

// values reads the fields of an act that are given.
func (f *form) values(params []param) map[string]any {
	values := map[string]any{}
	for _, p := range params {
		raw, given := f.raw(p.Name, p.Required)
		switch {
		case !given:
		case p.Kind == field.Number || p.Kind == field.Money:
			values[p.Name] = f.number(p.Name, p.Required, p.Min, p.Max)
		case p.Kind == field.Flag:
			values[p.Name] = f.flag(p.Name)
		case p.Kind == field.List || p.Kind == field.Object:
			values[p.Name] = raw
		default:
			values[p.Name] = f.text(p.Name, p.Required, maxText)
		}
	}
	return values
}

// plain reads a text, or a list of texts.
func (f *form) plain(into reflect.Value, p *param) {
	raw, ok := f.raw(p.Name, p.Required)
	if !ok {
		return
	}
	if json.Unmarshal(raw, into.Addr().Interface()) != nil {
		f.blame(p.Name, map[bool]string{true: "use a list of strings", false: "use a text"}[p.Kind == field.List])
	} else if problem := p.Problem(into).EN; problem != "" {
		f.blame(p.Name, problem)
	}
}

// object reads an object into the struct that to points to.
func (f *form) object(name string, raw json.RawMessage, to reflect.Value, p *param) {
	in := &form{path: f.path + name + "."}
	if json.Unmarshal(raw, &in.fields) != nil || in.fields == nil {
		f.blame(name, cmp.Or(p.Says.EN, "use "+p.braces()))
		return
	}
	in.onlyKnown(names(p.Fields))
	in.fill(to, p.Fields)
	if of, ok := to.Interface().(checked); ok {
		of.check(in)
	}
	if f.err == nil {
		f.err = in.err
	}
}

func (f *form) list(into reflect.Value, p *param) {
	raw, ok := f.raw(p.Name, p.Required)
	if !ok {
		return
	}
	var objects []json.RawMessage
	if json.Unmarshal(raw, &objects) != nil {
		f.blame(p.Name, "use a list of "+p.braces())
		return
	}
	if int64(len(objects)) > p.Max {
		f.blame(p.Name, fmt.Sprintf("use at most %d %s", p.Max, p.Name))
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(objects), len(objects)))
	for i, object := range objects {
		f.object(fmt.Sprintf("%s[%d]", p.Name, i), object, into.Index(i).Addr(), p)
	}
}

// momentOf reads a time (Unix µs); 0 = none.
func momentOf(f *web.Filter, name string) int64 {
	text := f.Text(name)
	if text == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.Blame(name, "use an RFC 3339 time such as 2026-11-21T08:00:00Z")
		return 0
	}
	return at.UnixMicro()
}
