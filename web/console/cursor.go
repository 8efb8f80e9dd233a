package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"backstop/internal/list"
	"backstop/web"
)

// cursorMAC is how many bytes of the MAC a cursor contains: 96 bits cannot be guessed, and URLs
// stay short.
const cursorMAC = 12

// cursors signs where pages begin. A cursor is valid only with its own list and filter.
type cursors struct{ key []byte }

// text returns a cursor for a URL; "" for the zero Cursor.
func (s cursors) text(name string, c list.Cursor) string {
	if c == (list.Cursor{}) {
		return ""
	}
	direction := byte('o')
	if c.Newer {
		direction = 'n'
	}
	values := binary.BigEndian.AppendUint64([]byte{direction}, uint64(c.ID))
	return base64.RawURLEncoding.EncodeToString(append(values, s.mac(name, values)...))
}

// parse parses a cursor. name is the list's path and filter.
func (s cursors) parse(name, text string) (list.Cursor, error) {
	if text == "" {
		return list.Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 9+cursorMAC || !hmac.Equal(raw[9:], s.mac(name, raw[:9])) {
		return list.Cursor{}, web.ErrCursor
	}
	return list.Cursor{ID: int64(binary.BigEndian.Uint64(raw[1:9])), Newer: raw[0] == 'n'}, nil
}

func (s cursors) mac(name string, values []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(values) // of fixed length, so the two parts cannot be confused
	h.Write([]byte(name))
	return h.Sum(nil)[:cursorMAC]
}
