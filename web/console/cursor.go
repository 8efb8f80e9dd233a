package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"backstop/internal/console"
	"backstop/web"
)

// cursorMAC is how many bytes of the MAC a cursor carries: 96 bits cannot be
// guessed, and an address stays short.
const cursorMAC = 12

// cursors signs where pages begin. A cursor belongs to its list and filter: with
// any other it is refused.
type cursors struct{ key []byte }

// text is a cursor as it stands in an address; the zero Cursor is none.
func (s cursors) text(list string, c console.Cursor) string {
	if c == (console.Cursor{}) {
		return ""
	}
	direction := byte('o')
	if c.Newer {
		direction = 'n'
	}
	values := binary.BigEndian.AppendUint64([]byte{direction}, uint64(c.ID))
	return base64.RawURLEncoding.EncodeToString(append(values, s.mac(list, values)...))
}

// parse reads a cursor back. list names path and filter.
func (s cursors) parse(list, text string) (console.Cursor, error) {
	if text == "" {
		return console.Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 9+cursorMAC || !hmac.Equal(raw[9:], s.mac(list, raw[:9])) {
		return console.Cursor{}, web.ErrCursor
	}
	return console.Cursor{ID: int64(binary.BigEndian.Uint64(raw[1:9])), Newer: raw[0] == 'n'}, nil
}

func (s cursors) mac(list string, values []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(values) // of fixed length: what follows cannot be taken for it
	h.Write([]byte(list))
	return h.Sum(nil)[:cursorMAC]
}
