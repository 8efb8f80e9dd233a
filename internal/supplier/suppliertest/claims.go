package suppliertest

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"sync"
	"time"

	"backstop/internal/base/mask"
	"backstop/internal/supplier"
)

func genuineIsRead(p *probe) {
	got, err := p.parse(p.message(Change{}))
	if err != nil {
		p.Errorf("the genuine message is refused: %v", err)
		return
	}
	if !reflect.DeepEqual(got, p.Want) {
		p.Errorf("the genuine message is read as\n %+v, want\n %+v", got, p.Want)
	}
	if _, err := p.Adapter.Parse(p.message(Change{}), nil); err != nil {
		p.Errorf("without a trace: %v", err)
	}
}

// neededIsDeclared checks that operators see of a message what they work with. All else is masked.
func neededIsDeclared(p *probe) {
	req := p.message(Change{})
	shown := string(mask.Of().Body(req.Body)) + mask.Of().Form(req.RawQuery)
	for what, text := range map[string]string{"order": p.Want.OrderRef, "trade number": p.Want.TradeNo, "status": p.Want.RawStatus} {
		sent := strings.Contains(string(req.Body)+req.RawQuery, text) // not encrypted
		if text != "" && sent && !strings.Contains(shown, text) {
			p.Errorf("the %s %s is masked: declare its name\n%s", what, text, shown)
		}
	}
	for _, name := range p.SignatureHeaders {
		if !mask.Shows(name) {
			p.Errorf("the header %s is not stored: declare its name", name)
		}
	}
}

// alteredBytes changes the message one byte at a time. In a body or a query a change may have
// no effect (the case of a percent escape); then the callback must be identical. In a signature
// header only the case of a letter may be ignored.
func alteredBytes(p *probe) {
	genuine := p.message(Change{})
	for _, part := range []struct {
		name string
		text []byte
		put  func(*supplier.Request, []byte)
	}{
		{"body", genuine.Body, func(req *supplier.Request, text []byte) { req.Body = text }},
		{"query", []byte(genuine.RawQuery), func(req *supplier.Request, text []byte) { req.RawQuery = string(text) }},
	} {
		for i, text := range alterations(part.text) {
			altered := clone(genuine)
			part.put(altered, text)
			if got, err := p.parse(altered); err == nil && !reflect.DeepEqual(got, p.Want) {
				p.Errorf("%s altered at byte %d is accepted: %+v", part.name, i, got)
				return
			}
		}
	}
	for _, name := range p.SignatureHeaders {
		alteredHeader(p, genuine, name)
	}
}

func alteredHeader(p *probe, genuine *supplier.Request, name string) {
	value := genuine.Header.Get(name)
	if value == "" {
		p.Errorf("the message builder sets no header %s", name)
	}
	for i, text := range alterations([]byte(value)) {
		altered := clone(genuine)
		altered.Header.Set(name, string(text))
		got, err := p.parse(altered)
		sameButCase := strings.EqualFold(string(text), value)
		if err == nil && (!sameButCase || !reflect.DeepEqual(got, p.Want)) {
			p.Errorf("header %s altered at byte %d is accepted", name, i)
			return
		}
	}
	altered := clone(genuine)
	altered.Header.Del(name)
	if _, err := p.parse(altered); !refused(err) {
		p.Errorf("without the header %s: %v, want *Refused", name, err)
	}
}

// alterations yields every text that differs from b in one byte: with its lowest bit or its
// case flipped, left out, or with a zero inserted before it or at the end. The first value is
// the byte's position.
func alterations(b []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i := range b {
			for _, mask := range []byte{0x01, 0x20} {
				flipped := bytes.Clone(b)
				flipped[i] ^= mask
				if !yield(i, flipped) {
					return
				}
			}
			if !yield(i, append(bytes.Clone(b[:i]), b[i+1:]...)) ||
				!yield(i, append(append(bytes.Clone(b[:i]), '0'), b[i:]...)) {
				return
			}
		}
		if len(b) > 0 {
			yield(len(b), append(bytes.Clone(b), '0'))
		}
	}
}

// tamperedSignature alters the signature itself. No alteration may pass: a comparison that
// stops early or a lax decoder would let it.
func tamperedSignature(p *probe) {
	length := 0
	p.message(Change{Tamper: func(signature string) string { length = len(signature); return signature }})
	if length == 0 {
		p.Errorf("the message builder offers no signature to tamper with")
		return
	}
	tampers := map[string]func(string) string{
		"missing":     func(string) string { return "" },
		"cut in half": func(s string) string { return s[:len(s)/2] },
		"lengthened":  func(s string) string { return s + s[:1] },
		"all zeros":   func(s string) string { return strings.Repeat("0", len(s)) },
	}
	for name, tamper := range tampers {
		if _, err := p.parse(p.message(Change{Tamper: tamper})); !badSignature(err) {
			p.Errorf("signature %s: %v, want *Refused as bad signature", name, err)
		}
	}
	for i := range length {
		_, err := p.parse(p.message(Change{Tamper: func(s string) string {
			flipped := []byte(s)
			flipped[i] ^= 0x01
			return string(flipped)
		}}))
		if !badSignature(err) {
			p.Errorf("signature with byte %d altered: %v, want *Refused as bad signature", i, err)
			return
		}
	}
}

func anotherKey(p *probe) {
	if _, err := p.Stranger.Parse(p.message(Change{}), &supplier.Trace{}); !badSignature(err) {
		p.Errorf("an adapter with other keys: %v, want *Refused as bad signature", err)
	}
}

func signedTime(p *probe) {
	if p.Window == 0 {
		return // the scheme signs no time; repeats are detected by the event key
	}
	for offset, accepted := range map[time.Duration]bool{
		-p.Window - time.Second: false,
		-p.Window + time.Second: true,
		p.Window - time.Second:  true,
		p.Window + time.Second:  false,
		-24 * time.Hour:         false,
		24 * time.Hour:          false,
	} {
		got, err := p.parse(p.message(Change{SignedAt: Now.Add(offset)}))
		if accepted && (err != nil || got.Status != p.Want.Status) {
			p.Errorf("signed %s away: %v, want it accepted", offset, err)
		}
		if !accepted && !badSignature(err) {
			p.Errorf("signed %s away: %v, want *Refused as bad signature", offset, err)
		}
	}
}

func doubledField(p *probe) {
	if got, err := p.parse(p.message(Change{Duplicate: true})); err == nil {
		p.Errorf("the order number occurs twice and one was accepted: %+v", got)
	}
}

func doubledHeader(p *probe) {
	genuine := p.message(Change{})
	for _, name := range p.SignatureHeaders {
		value := genuine.Header.Get(name)
		for _, values := range [][]string{{value, "forged"}, {"forged", value}} {
			doubled := clone(genuine)
			doubled.Header[name] = values
			if got, err := p.parse(doubled); err == nil && !reflect.DeepEqual(got, p.Want) {
				p.Errorf("header %s twice is accepted: %+v", name, got)
			}
		}
	}
}

// oddAmounts are texts that two programs may read differently, or that are not amounts at all.
// A message with one must not move an order, even if correctly signed.
var oddAmounts = []string{
	"1e2", "1E+2", "+1", "-1", "-0", "01", "123.450", "123.4567", "1,000", "1_000", "0x10",
	"99999999999999999999", "9223372036854775808", "1000000000000001.00", "NaN", "Infinity",
	"null", "true", `""`, "[1]", "١٢", "1.", ".5",
}

func oddNumbers(p *probe) {
	for _, text := range append(append([]string{}, oddAmounts...), p.OddAmounts...) {
		if got, err := p.parse(p.message(Change{Amount: text})); err == nil && got.Status == supplier.Paid {
			p.Errorf("amount %q counts as %d %s", text, got.Amount, got.Currency)
		}
	}
}

func changedFields(p *probe) {
	want := p.Want
	want.Amount = p.OtherMinor
	got, err := p.parse(p.message(Change{Amount: p.OtherAmount}))
	if err != nil || got.Amount != want.Amount || got.OrderRef != want.OrderRef || got.Status != want.Status {
		p.Errorf("amount %s: %v %+v, want %d", p.OtherAmount, err, got, want.Amount)
	}
	const other = "ORDER-20260301-OTHER"
	got, err = p.parse(p.message(Change{OrderRef: other}))
	if err != nil || got.OrderRef != other || got.Amount != p.Want.Amount {
		p.Errorf("another order: %v %+v, want %s", err, got, other)
	}
}

func harmlessWords(p *probe) {
	if len(p.Harmless) == 0 {
		p.Errorf("the suite names no harmless word")
	}
	for _, word := range p.Harmless {
		got, err := p.parse(p.message(Change{Status: word}))
		if err != nil || got.Status != supplier.Other || got.Final || got.Reverses {
			p.Errorf("harmless %q: %v, status %q final %v, want other", word, err, got.Status, got.Final)
		}
	}
}

// unknownWord: an unknown status is shown to operators under its own name. As "other" it would
// be recorded and never looked at.
func unknownWord(p *probe) {
	const word = "BACKSTOP_UNKNOWN_WORD"
	got, err := p.parse(p.message(Change{Status: word}))
	if err != nil || got.Status != supplier.Unknown || got.RawStatus != word || got.Final || got.Reverses {
		p.Errorf("an unknown word: %v, status %q of %q, want unknown", err, got.Status, got.RawStatus)
	}
}

func eventKey(p *probe) {
	key := func(c Change) string {
		got, err := p.parse(p.message(c))
		if err != nil {
			p.Errorf("%+v: %v", c, err)
		}
		return got.EventKey
	}
	if again := key(Change{SignedAt: Now.Add(p.Window / 2)}); again != p.Want.EventKey {
		p.Errorf("a repeat, signed anew, has the event key %q, want %q", again, p.Want.EventKey)
	}
	if other := key(Change{TradeNo: "TRADE-OTHER"}); other == p.Want.EventKey {
		p.Errorf("another payment has the same event key %q", other)
	}
	if other := key(Change{Status: p.OtherStatus}); other == p.Want.EventKey {
		p.Errorf("status %q has the same event key %q", p.OtherStatus, other)
	}
}

func anotherAccount(p *probe) {
	ours := p.Adapter.Identity()
	names := 0
	for name, value := range ours {
		if value != "" {
			names++
		}
		if value != "" && p.Want.Identity[name] != value {
			p.Errorf("the genuine message has %s %q, configured is %q", name, p.Want.Identity[name], value)
		}
	}
	if p.Adapter.Account() == "" {
		p.Errorf("the adapter names no account")
	}
	if names == 0 {
		return // the protocol contains no account: each account has its own key
	}
	got, err := p.parse(p.message(Change{Account: "9999999999"}))
	if err != nil {
		return // refusing it is equally good
	}
	for name, value := range ours {
		if value != "" && got.Identity[name] != value {
			return
		}
	}
	p.Errorf("a message for another account looks like ours: %v", got.Identity)
}

func replies(p *probe) {
	for result := supplier.Taken; result <= supplier.InternalFailed; result++ {
		want, ok := p.Replies[result]
		if !ok {
			p.Errorf("the suite names no answer to result %d", result)
			continue
		}
		got := p.Adapter.Reply(result)
		if !reflect.DeepEqual(got, want) {
			p.Errorf("result %d is answered %d %q %q, want %d %q %q", result,
				got.Status, got.ContentType, got.Body, want.Status, want.ContentType, want.Body)
		}
		if result != supplier.Taken && reflect.DeepEqual(got, p.Adapter.Reply(supplier.Taken)) {
			p.Errorf("result %d is answered like success", result)
		}
		for _, secret := range p.Secrets {
			if secret != "" && bytes.Contains(got.Body, []byte(secret)) {
				p.Errorf("a secret shows in the answer to result %d", result)
			}
		}
	}
}

// concurrentUse parses two different messages at once. With -race it also finds harmless shared
// state.
func concurrentUse(p *probe) {
	const callers, rounds = 8, 10
	messages := []Change{{}, {OrderRef: "ORDER-20260301-OTHER"}}
	wrong := make(chan supplier.Callback, callers*rounds)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			change := messages[caller%len(messages)]
			req := p.message(change)
			for range rounds {
				got, err := p.Adapter.Parse(req, &supplier.Trace{})
				if err != nil || got.OrderRef != cmp.Or(change.OrderRef, p.Want.OrderRef) {
					wrong <- got
				}
			}
		})
	}
	wg.Wait()
	close(wrong)
	for got := range wrong {
		p.Errorf("concurrent callers mix up messages: %+v", got)
		return
	}
}
