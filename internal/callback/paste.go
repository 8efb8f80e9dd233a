package callback

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// Limits of a pasted request.
const (
	// MaxPaste is in bytes; encoded as a form, it is below the limit of request bodies.
	MaxPaste   = 16 << 10
	maxHeaders = 100
	maxQuoted  = 80 // bytes of a text that an error repeats
)

// callbackPath is where suppliers send callbacks.
const callbackPath = "/callback/"

// Paste reads a request to a supplier from a text of at most MaxPaste, as ReadText does.
func Paste(code, pasted string) (*supplier.Request, error) {
	if len(pasted) > MaxPaste {
		return nil, pasteLong.Say(MaxPaste)
	}
	return ReadText(code, pasted)
}

// ReadText reads a request to a supplier from a text: an HTTP request as it is sent, or a curl line.
// Its errors are text.Messages.
//
// A text in a form does not say how its lines end: a body has the line ends that its
// Content-Length fits, else line feeds, and without Content-Length none at its end.
func ReadText(code, pasted string) (*supplier.Request, error) {
	switch {
	case strings.TrimSpace(pasted) == "":
		return nil, pasteEmpty.Say()
	case !utf8.ValidString(pasted):
		return nil, pasteText.Say()
	}
	pasted = strings.ReplaceAll(pasted, "\r\n", "\n")
	p := paste{header: http.Header{}}
	var err error
	if line, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(pasted), "$ "), "curl"); ok &&
		strings.TrimLeft(line, " \t\\\n") != line {
		err = p.curl(line)
	} else {
		err = p.http(code, strings.TrimLeft(pasted, "\n"))
	}
	if err != nil {
		return nil, err
	}
	return p.request(code)
}

// paste is a request as far as it is read.
type paste struct {
	method, target string
	header         http.Header
	body           string
}

// http reads a request as it is sent.
func (p *paste) http(code, pasted string) error {
	head, body, _ := strings.Cut(pasted, "\n\n")
	head = strings.TrimRight(head, "\n")
	lines := strings.Split(head, "\n")
	parts := strings.Fields(lines[0])
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && !strings.HasPrefix(parts[2], "HTTP/") {
		return pasteLine.Say(textlimit.Clip(code, maxQuoted))
	}
	p.method, p.target = parts[0], parts[1]
	for _, line := range lines[1:] {
		if !p.addHeader(line) {
			return pasteHeader.Say(strconv.Quote(textlimit.Clip(line, maxQuoted)))
		}
	}
	p.body = p.fitted(body)
	return nil
}

// fitted returns the body with the line ends that its length says.
func (p *paste) fitted(body string) string {
	bare := strings.TrimRight(body, "\n")
	length, err := strconv.Atoi(p.header.Get("Content-Length"))
	if err != nil {
		return bare
	}
	for n := range len(body) - len(bare) + 1 {
		for _, ends := range []string{"\n", "\r\n"} {
			if fit := strings.ReplaceAll(bare, "\n", ends) + strings.Repeat(ends, n); len(fit) == length {
				return fit
			}
		}
	}
	return bare
}

func (p *paste) addHeader(line string) bool {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t") ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	p.header.Add(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t"))
	return true
}

// request returns the request, if it is one that a supplier could send here.
func (p *paste) request(code string) (*supplier.Request, error) {
	headers := 0
	for _, values := range p.header {
		headers += len(values)
	}
	target, err := url.Parse(p.target)
	switch {
	case headers > maxHeaders:
		return nil, pasteHeaders.Say(maxHeaders)
	case p.method != http.MethodGet && p.method != http.MethodPost:
		return nil, pasteMethod.Say(strconv.Quote(textlimit.Clip(p.method, maxQuoted)))
	case err != nil:
		return nil, pasteTarget.Say(strconv.Quote(textlimit.Clip(p.target, maxQuoted)))
	case !strings.HasSuffix(target.EscapedPath(), callbackPath+code):
		return nil, pasteOther.Say(strconv.Quote(textlimit.Clip(target.EscapedPath(), maxQuoted)), callbackPath+code)
	}
	for _, coding := range p.header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return nil, pasteEncoded.Say(strconv.Quote(textlimit.Clip(coding, maxQuoted)))
		}
	}
	return &supplier.Request{
		Method: p.method, Path: target.EscapedPath(), RawQuery: target.RawQuery, Header: p.header,
		Body: []byte(p.body),
	}, nil
}
