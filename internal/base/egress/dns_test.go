package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// fakeDNS answers from memory. The n-th look-up of a name gets the n-th set of addresses, and
// all further ones the last set, as from a rebinding server.
type fakeDNS struct {
	t       *testing.T
	mu      sync.Mutex
	names   map[string][][]netip.Addr
	queried map[string]int
}

func newFakeDNS(t *testing.T) *fakeDNS {
	return &fakeDNS{t: t, names: map[string][][]netip.Addr{}, queried: map[string]int{}}
}

// point sets the answers of further look-ups of name, which ends in a dot.
func (d *fakeDNS) point(name string, answers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name] = nil
	for _, text := range answers {
		d.names[name] = append(d.names[name], []netip.Addr{netip.MustParseAddr(text)})
	}
}

// resolver returns the standard library's resolver, connected to d in memory instead of by a
// socket.
func (d *fakeDNS) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go d.serve(server)
		return client, nil
	}}
}

// serve speaks DNS over a stream: each message follows its length (RFC 1035, 4.2.2).
func (d *fakeDNS) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
			d.t.Errorf("question: %v", err)
			return
		}
		d.answer(&m)
		reply, err := m.Pack()
		if err != nil {
			d.t.Errorf("answer: %v", err)
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func (d *fakeDNS) answer(m *dnsmessage.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := m.Questions[0]
	name := q.Name.String()
	answers, known := d.names[name]
	m.Response, m.Additionals = true, nil
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	key := name + q.Type.String() // A and AAAA are two questions of one look-up
	n := min(d.queried[key], len(answers)-1)
	d.queried[key]++
	for _, addr := range answers[n] {
		var body dnsmessage.ResourceBody
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			body = &dnsmessage.AResource{A: addr.As4()}
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   body,
		})
	}
}
