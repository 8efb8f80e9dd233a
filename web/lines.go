package web

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// lines follows what a client sends on one connection and finds requests with a line that ends
// in a bare line feed, or without a version in the request line. Other readers see the end of
// such a line elsewhere, or take it for HTTP/0.9 (RFC 9112, sections 2.2 and 3); the library
// takes both and keeps no trace of them. It is used by the connection's goroutine alone.
type lines struct {
	line []byte // the beginning of a line that has not ended yet, at most headerBytes
	at   position
	body int64  // bytes left of the body
	n    uint64 // requests that have begun
	bad  uint64 // number of the first irregular request; 0 = none
}

type position int

const (
	beforeRequest position = iota
	inHeader
	inBody
	unfollowed // what comes is not a request, or the connection is closed after this one
)

// irregular reports whether the n-th request of the connection, or one before it, is irregular.
func (l *lines) irregular(n uint64) bool { return l.bad != 0 && l.bad <= n }

func (l *lines) read(b []byte) {
	for len(b) > 0 && l.at != unfollowed {
		if l.at == inBody {
			n := min(int64(len(b)), l.body)
			b = b[n:]
			if l.body -= n; l.body == 0 {
				l.at = beforeRequest
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		part := b[:end+1]
		if end < 0 {
			part = b
		}
		b = b[len(part):]
		if end >= 0 && len(l.line) == 0 {
			l.end(part)
			continue
		}
		if len(l.line)+len(part) > headerBytes { // the library refuses it
			l.at = unfollowed
			return
		}
		l.line = append(l.line, part...)
		if end >= 0 {
			l.end(l.line)
			l.line = l.line[:0]
		}
	}
}

// end takes a whole line.
func (l *lines) end(line []byte) {
	text, regular := bytes.CutSuffix(line, []byte("\r\n"))
	if !regular {
		text = line[:len(line)-1]
	}
	switch {
	case l.at == beforeRequest && len(text) == 0 && regular: // allowed between requests
		return
	case l.at == beforeRequest:
		l.at, l.body = inHeader, 0
		l.n++
		regular = regular && hasVersion(string(text))
	case len(text) == 0 && l.body > 0:
		l.at = inBody
	case len(text) == 0:
		l.at = beforeRequest
	default:
		l.header(string(text))
	}
	if !regular && l.bad == 0 {
		l.bad = max(l.n, 1)
	}
}

// header takes what says where the body ends. After a coding or an upgrade no request follows.
func (l *lines) header(line string) {
	name, value, _ := strings.Cut(line, ":")
	switch strings.ToLower(name) {
	case "content-length":
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 {
			n = math.MaxInt64 // refused
		}
		l.body = n
	case "transfer-encoding", "upgrade":
		l.body = math.MaxInt64
	}
}

// hasVersion reports whether a request line has a method, a target and a version.
func hasVersion(line string) bool {
	parts := strings.Split(line, " ")
	return len(parts) >= 3 && strings.HasPrefix(parts[len(parts)-1], "HTTP/")
}
