package access

import (
	"errors"
	"testing"
)

func TestCommonPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	for given, refused := range map[string]bool{
		"1qaz2wsx3edc":           true, // of the list as it is
		"1QAZ2wsx3edc":           true,
		"password1234":           true,
		"2026-Football!!":        true,
		"monkeymonkey":           true,
		"123456123456":           true,
		"111111111111":           true,
		"xxxxxxxxxxxx":           true,
		"correct horse battery":  false,
		"monkey dragon football": false, // three of them are many guesses
		"k3-wx7q-p0zt":           false,
		"一二三四五六七八九十百千":           false,
	} {
		if err := checkPassword(given); errors.Is(err, ErrCommon) != refused || errors.Is(err, ErrPassword) != refused {
			t.Errorf("%s: %v", given, err)
		}
	}
	for range 1000 {
		if one := newOneTimePassword(); checkPassword(one) != nil {
			t.Errorf("a password of our own is refused: %s", one)
		}
	}
	if n := len(common()); n != commonPasswords {
		t.Errorf("%d common passwords", n)
	}
}
