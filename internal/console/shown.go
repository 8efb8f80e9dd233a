package console

import (
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

// Attempts of earlier versions contain complete addresses. Reading them hides the secrets of
// the address, also if the response repeats them.

func showAttempts(all []notify.Attempt) {
	for i := range all {
		a := &all[i]
		if shown := notify.Shown(a.URL); shown != a.URL {
			secrets := outcome.InAddress(a.URL)
			a.ResponseHeader = outcome.Hide(a.ResponseHeader, secrets)
			a.ResponseBody = []byte(outcome.Hide(string(a.ResponseBody), secrets))
			a.URL = shown
		}
	}
}
