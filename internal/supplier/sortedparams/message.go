package sortedparams

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// readFields returns the message's parameters by name, from the one place where the format has
// them. Errors are *Refused as malformed.
func readFields(format string, req *supplier.Request) (map[string]string, error) {
	var fields map[string]string
	var err error
	switch format {
	case "json":
		fields, err = readJSON(req)
	case "xml":
		fields, err = readXML(req)
	default:
		fields, err = readForm(req)
	}
	if err != nil {
		return nil, err
	}
	if len(fields) > supplier.MaxFields {
		return nil, supplier.RefuseMalformed(tooMany, supplier.MaxFields)
	}
	for name := range fields {
		// "a=1&b" = "2" and "a" = "1&b=2" would be signed as one text.
		if name == "" || strings.ContainsAny(name, "&=") {
			return nil, supplier.RefuseMalformed(oddName)
		}
	}
	return fields, nil
}

// readForm reads a GET's query or a POST's body, never both: one could be used to smuggle a
// parameter past a check of the other.
func readForm(req *supplier.Request) (map[string]string, error) {
	switch {
	case req.Method == http.MethodGet && len(req.Body) == 0:
		return supplier.ParseForm(req.RawQuery)
	case req.Method == http.MethodPost && req.RawQuery == "":
		return supplier.ParseForm(string(req.Body))
	case req.Method == http.MethodGet || req.Method == http.MethodPost:
		return nil, supplier.RefuseMalformed(queryAndBody, req.Method)
	default:
		return nil, supplier.RefuseMalformed(getOrPost, strconv.Quote(textlimit.Clip(req.Method, 10)))
	}
}

// readJSON reads a flat object. A string is its text; a number keeps its digits as sent ("1.50"
// is not "1.5"); true and false are these words; null is empty; a nested object or list is its
// own text without whitespace between tokens.
func readJSON(req *supplier.Request) (map[string]string, error) {
	if req.Method != http.MethodPost {
		return nil, supplier.RefuseMalformed(postOnly, strconv.Quote(textlimit.Clip(req.Method, 10)))
	}
	var values map[string]json.RawMessage
	if err := supplier.DecodeJSON(req.Body, &values); err != nil {
		return nil, err
	}
	if values == nil {
		return nil, supplier.RefuseMalformed(jsonNull)
	}
	fields := make(map[string]string, len(values))
	for name, raw := range values {
		text, err := jsonText(raw)
		if err != nil {
			return nil, supplier.RefuseMalformed(jsonForm)
		}
		fields[name] = text
	}
	return fields, nil
}

func jsonText(raw json.RawMessage) (string, error) {
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		var compact bytes.Buffer
		err := json.Compact(&compact, raw)
		return compact.String(), err
	case 'n':
		return "", nil
	default:
		return string(raw), nil
	}
}

// readXML reads one root element with one element per parameter, whose text (CDATA or not) is
// used as is. Everything that two XML readers may read differently is refused: document types
// and custom entities, comments (which split a text in two), attributes, namespaces, nested
// elements, duplicate names.
func readXML(req *supplier.Request) (map[string]string, error) {
	if req.Method != http.MethodPost {
		return nil, supplier.RefuseMalformed(postOnly, strconv.Quote(textlimit.Clip(req.Method, 10)))
	}
	r := xmlReader{fields: map[string]string{}}
	d := xml.NewDecoder(bytes.NewReader(req.Body)) // strict, without entities but XML's five
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, supplier.RefuseMalformed(xmlForm)
		}
		if problem := r.take(token); problem != "" {
			return nil, supplier.RefuseMalformed(xmlHas, problem)
		}
	}
	if !r.closed {
		return nil, supplier.RefuseMalformed(xmlEmpty)
	}
	return r.fields, nil
}

// xmlReader tracks the position in a flat document: depth 1 is inside the root, 2 inside a
// parameter.
type xmlReader struct {
	fields  map[string]string
	depth   int
	started bool // a token was seen; a declaration may only come first
	closed  bool // the root has ended
	name    string
	text    strings.Builder
}

// take processes one token and returns what is wrong with it; "" = nothing.
func (r *xmlReader) take(token xml.Token) (problem string) {
	switch token := token.(type) {
	case xml.StartElement:
		return r.start(token)
	case xml.EndElement:
		if r.depth == 2 {
			r.fields[r.name] = r.text.String()
		}
		r.depth--
		r.closed = r.depth == 0
	case xml.CharData:
		if r.depth == 2 {
			r.text.Write(token)
		} else if len(bytes.Trim(token, " \t\r\n")) > 0 {
			return "text between the parameters"
		}
	case xml.ProcInst:
		if r.started || token.Target != "xml" {
			return "a processing instruction"
		}
	case xml.Comment:
		return "a comment"
	case xml.Directive:
		return "a document type"
	}
	r.started = true
	return ""
}

func (r *xmlReader) start(e xml.StartElement) (problem string) {
	switch {
	case r.closed:
		return "a second root"
	case r.depth == 2:
		return "an element inside a parameter"
	case len(e.Attr) > 0:
		return "an attribute"
	case e.Name.Space != "" || strings.Contains(e.Name.Local, ":"):
		return "a namespace"
	}
	r.started = true
	r.depth++
	if r.depth < 2 {
		return ""
	}
	if _, twice := r.fields[e.Name.Local]; twice {
		return "a parameter more than once"
	}
	r.name = e.Name.Local
	r.text.Reset()
	return ""
}
