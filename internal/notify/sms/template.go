package sms

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"text/template/parse"

	"backstop/internal/base/money"
)

// Limits of a template: a text message has a few hundred bytes, the request around it a few
// thousand.
const (
	maxTemplate = 8 << 10
	maxOutput   = 16 << 10
)

// functions are all that a template may call, each bounded by its input. Functions of the
// standard library such as printf could write a gigabyte of spaces.
var functions = template.FuncMap{
	"json":   func(s string) (string, error) { b, err := json.Marshal(s); return string(b), err },
	"query":  url.QueryEscape,
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"upper":  strings.ToUpper,
	"lower":  strings.ToLower,
	"sha256": func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) },
	"hmac": func(key, s string) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(s))
		return hex.EncodeToString(mac.Sum(nil))
	},
	// money formats an amount: 1999 and CNY are "19.99 CNY".
	"money": func(amount, currency string) (string, error) {
		minor, err := money.ParseMinor(amount)
		return money.Format(minor, currency) + " " + currency, err
	},
	"join": func(parts ...string) string { return strings.Join(parts, "") },
}

// comparisons are the harmless functions of the standard library.
var comparisons = map[string]bool{"eq": true, "ne": true, "and": true, "or": true, "not": true}

// values is what a template can use.
type values struct {
	To     string            // the number, as in the URL
	ID     string            // of the notification, the same in all attempts
	Type   string            // "order.paid"
	Time   string            // of this attempt, Unix seconds
	Data   map[string]string // see notify.Fields
	Secret map[string]string
}

// parseTemplate parses a template and rejects what could run for long: loops, and templates
// that call each other.
func parseTemplate(text string) (*template.Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("longer than %d bytes", maxTemplate)
	}
	t, err := template.New("sms").Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		// The error itself may quote the template.
		return nil, errors.New("cannot be read as a template")
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("must not define other templates")
	}
	if t.Tree == nil || t.Root == nil {
		return t, nil
	}
	return t, checkNode(t.Root)
}

// checkNode accepts text, values, the functions above, and if/else. It rejects everything
// else.
func checkNode(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		return checkNodes(n.Nodes)
	case *parse.IfNode:
		return checkNodes([]parse.Node{n.Pipe, n.List, n.ElseList})
	case *parse.ActionNode:
		return checkNode(n.Pipe)
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			return errors.New("must not declare variables")
		}
		for _, c := range n.Cmds {
			if err := checkNodes(c.Args); err != nil {
				return err
			}
		}
		return nil
	case *parse.IdentifierNode:
		if _, ours := functions[n.Ident]; !ours && !comparisons[n.Ident] {
			return fmt.Errorf("must not call %s", n.Ident)
		}
		return nil
	case *parse.TextNode, *parse.FieldNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.CommentNode:
		return nil
	}
	return errors.New("may use values, functions and if/else only")
}

func checkNodes(nodes []parse.Node) error {
	for _, n := range nodes {
		if err := checkNode(n); err != nil {
			return err
		}
	}
	return nil
}

// errLong means that a template writes more than any gateway accepts.
var errLong = errors.New("the text is too long")

// bounded stops a template that writes too much.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, errLong
	}
	return b.Buffer.Write(p)
}

func run(t *template.Template, v values) (string, error) {
	var out bounded
	if err := t.Execute(&out, v); err != nil {
		// The error itself quotes the template, and perhaps secrets.
		if errors.Is(err, errLong) {
			return "", errLong
		}
		return "", errors.New("the template cannot be applied to this message")
	}
	return out.String(), nil
}
