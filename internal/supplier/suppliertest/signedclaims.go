package suppliertest

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"backstop/internal/supplier"
)

// signs reports whether the kind signs its answers.
func (p *querier) signs() bool { return p.Stranger != nil }

// alteredAnswer changes a signed answer one byte at a time. If the signature covers only part
// of the body, a change outside that part may have no effect.
func alteredAnswer(p *querier) {
	if !p.signs() {
		return
	}
	for _, op := range p.ops() {
		genuine := p.Answer(op, Change{})
		for i, text := range flips(genuine.Body) {
			altered := copied(genuine)
			altered.Body = text
			if o := p.answered(op, altered); !o.unknown() && !p.same(op, o) {
				p.Errorf("%s: body altered at byte %d is believed: %+v", op, i, o)
				return
			}
		}
		for _, name := range p.SignatureHeaders {
			value := genuine.Header.Get(name)
			for i, text := range flips([]byte(value)) {
				altered := copied(genuine)
				altered.Header.Set(name, string(text))
				if o := p.answered(op, altered); !o.unknown() && (!strings.EqualFold(string(text), value) || !p.same(op, o)) {
					p.Errorf("%s: header %s altered at byte %d is believed", op, name, i)
					return
				}
			}
			doubled := copied(genuine)
			doubled.Header[http.CanonicalHeaderKey(name)] = []string{value, "forged"}
			if o := p.answered(op, doubled); !o.unknown() {
				p.Errorf("%s: header %s twice is believed", op, name)
			}
		}
	}
}

// flips yields every text that differs from b in one byte: with its lowest bit flipped, or left
// out. The other alterations are checked on callbacks, with the same verifier.
func flips(b []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i := range b {
			flipped := bytes.Clone(b)
			flipped[i] ^= 0x01
			if !yield(i, flipped) || !yield(i, append(bytes.Clone(b[:i]), b[i+1:]...)) {
				return
			}
		}
	}
}

func unsignedAnswer(p *querier) {
	if !p.signs() {
		return
	}
	for _, op := range p.ops() {
		genuine := p.Answer(op, Change{Tamper: func(string) string { return "" }})
		if o := p.answered(op, genuine); !o.unknown() || o.kept.Class != supplier.ClassBadSignature {
			p.Errorf("%s: an empty signature: %s, class %s", op, o.state, o.kept.Class)
		}
		for _, name := range p.SignatureHeaders {
			bare := copied(p.Answer(op, Change{}))
			bare.Header.Del(name)
			if o := p.answered(op, bare); !o.unknown() || o.kept.Class != supplier.ClassBadSignature {
				p.Errorf("%s: without the header %s: %s, class %s", op, name, o.state, o.kept.Class)
			}
		}
	}
}

func strangersAnswer(p *querier) {
	if !p.signs() {
		return
	}
	stranger := p.Stranger(scripted())
	for _, op := range p.ops() {
		ctx := context.WithValue(context.Background(), answerKey{}, p.Answer(op, Change{}))
		if o := p.call(ctx, stranger, op); !o.unknown() || o.kept.Class != supplier.ClassBadSignature {
			p.Errorf("%s: an adapter with other keys: %s, class %s", op, o.state, o.kept.Class)
		}
	}
}

func answerTime(p *querier) {
	if p.Window == 0 {
		return
	}
	for _, op := range p.ops() {
		for offset, believed := range map[time.Duration]bool{
			-p.Window - time.Second: false, -p.Window + time.Second: true, p.Window - time.Second: true, p.Window + time.Second: false,
		} {
			o := p.answered(op, p.Answer(op, Change{SignedAt: Now.Add(offset)}))
			if believed && !p.same(op, o) || !believed && (!o.unknown() || o.kept.Class != supplier.ClassBadSignature) {
				p.Errorf("%s: signed %s away: %s, class %s", op, offset, o.state, o.kept.Class)
			}
		}
	}
}
