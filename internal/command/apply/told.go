package apply

import (
	"errors"
	"slices"
	"strings"
	"time"

	"backstop/internal/merchant"
	"backstop/internal/notify"
)

// Limits of how somebody is told.
const (
	maxURLs     = 10 // plain addresses, tried in turn
	maxURL      = 2048
	maxAckText  = 256 // an acknowledgement is a word; longer ones are pages
	maxInFlight = 1000
)

// toldFields are the fields of how a merchant, or a system of the house, is told.
var toldFields = []string{
	"urls", "endpoints", "balance", "events", "ack", "ack_text", "format", "schedule", "timeout", "max_in_flight",
	"rate_limit", "breaker",
}

// formats are how a webhook's body may be written: as JSON with Standard Webhooks'
// signature, or as sorted parameters signed with HMAC-SHA256 or MD5.
var formats = []string{"standard", "form", "form-md5"}

// toldDecl is how somebody is told. The endpoints stand beside the settings until
// the secrets that the file leaves out are known.
type toldDecl struct {
	settings  merchant.Settings
	endpoints []endpointDecl
	// keeps are the fields that the file leaves out: they stay as they are stored.
	keeps []string
}

// told reads how somebody wants to be told. What is left out of a new one, or is null,
// has the default of the contract.
func (o object) told(env Env, files *keyFiles) toldDecl {
	defaults := env.Defaults.filled()
	s := merchant.Settings{
		URLs:        []string{},
		Ack:         o.at("ack").oneOf("status", "text"),
		AckText:     o.at("ack_text").text(maxAckText),
		Format:      o.at("format").oneOf(formats...),
		TimeoutMS:   o.at("timeout").duration(time.Second, 10*time.Second, defaults.Timeout).Milliseconds(),
		MaxInFlight: int(o.at("max_in_flight").whole(1, maxInFlight, int64(defaults.MaxInFlight))),
		Events:      o.at("events").eventTypes(),
		Balance:     o.at("balance").oneOf(merchant.Failover, merchant.Weighted, merchant.All),

		RatePerSecond: o.at("rate_limit").perSecond(),
		Breaker:       o.at("breaker").breaker(),
	}
	if s.AckText == "" {
		s.AckText = "success"
	}
	urls := o.at("urls").list()
	if len(urls) > maxURLs {
		o.at("urls").wrong("at most %d addresses fit here", maxURLs)
		urls = nil
	}
	for _, u := range urls {
		before := len(o.all.found)
		text := u.required(maxURL)
		if err := env.CheckURL(text); err != nil && len(o.all.found) == before {
			u.wrong("%v", err)
		}
		s.URLs = append(s.URLs, text)
	}
	s.Schedule, s.WaitsMS = o.at("schedule").schedule(defaults.Schedule)
	return toldDecl{settings: s, endpoints: o.at("endpoints").endpoints(env, files), keeps: o.keeps()}
}

// keeps are the fields of how somebody is told that the file leaves out. Lists, and the
// breaker's rules, are taken as a whole.
func (o object) keeps() (names []string) {
	for _, name := range toldFields {
		if o.leftOut(name) {
			names = append(names, name)
		}
	}
	return names
}

// over is what the file says over what is stored.
func (t toldDecl) over(was merchant.Settings) merchant.Settings {
	is := t.settings
	for _, f := range toldSettings {
		if slices.Contains(t.keeps, f.name) {
			f.keep(&is, &was)
		}
	}
	return is
}

// toldSetting is one field of how somebody is told.
type toldSetting struct {
	name string
	same func(a, b *merchant.Settings) bool
	keep func(is, was *merchant.Settings)
}

func one[T comparable](name string, at func(*merchant.Settings) *T) toldSetting {
	return toldSetting{
		name, func(a, b *merchant.Settings) bool { return *at(a) == *at(b) },
		func(is, was *merchant.Settings) { *at(is) = *at(was) },
	}
}

func several(name string, at func(*merchant.Settings) *[]string) toldSetting {
	return toldSetting{
		name, func(a, b *merchant.Settings) bool { return slices.Equal(*at(a), *at(b)) },
		func(is, was *merchant.Settings) { *at(is) = *at(was) },
	}
}

// toldSettings are all fields but the endpoints.
var toldSettings = []toldSetting{
	several("urls", func(s *merchant.Settings) *[]string { return &s.URLs }),
	one("ack", func(s *merchant.Settings) *string { return &s.Ack }),
	one("ack_text", func(s *merchant.Settings) *string { return &s.AckText }),
	one("format", func(s *merchant.Settings) *string { return &s.Format }),
	{
		"schedule", func(a, b *merchant.Settings) bool {
			return a.Schedule == b.Schedule && slices.Equal(a.WaitsMS, b.WaitsMS)
		}, func(is, was *merchant.Settings) { is.Schedule, is.WaitsMS = was.Schedule, was.WaitsMS },
	},
	one("timeout", func(s *merchant.Settings) *int64 { return &s.TimeoutMS }),
	one("max_in_flight", func(s *merchant.Settings) *int { return &s.MaxInFlight }),
	one("rate_limit", func(s *merchant.Settings) *float64 { return &s.RatePerSecond }),
	one("breaker", func(s *merchant.Settings) *merchant.Breaker { return &s.Breaker }),
	several("events", func(s *merchant.Settings) *[]string { return &s.Events }),
	one("balance", func(s *merchant.Settings) *string { return &s.Balance }),
}

// eventTypes reads a list of types of events; an empty one stands for all.
func (v value) eventTypes() []string {
	var types []string
	seen := names{}
	for _, e := range v.list() {
		if t := e.oneOf(notify.Types...); e.given() {
			seen.once(e, "event", t)
			types = append(types, t)
		}
	}
	return types
}

// breaker reads what a merchant's breaker does otherwise than the program's own
// settings (BACKSTOP_BREAKER_…) say.
func (v value) breaker() merchant.Breaker {
	o := v.object("failures", "open", "rate", "window", "least", "slow")
	rate := int(o.at("rate").whole(0, 100, 0))
	if rate == 0 && o.at("rate").given() {
		rate = merchant.NoRate
	}
	return merchant.Breaker{
		Failures:    int(o.at("failures").whole(1, 1000, 0)),
		OpenMS:      o.at("open").duration(time.Second, 24*time.Hour, 0).Milliseconds(),
		RatePercent: rate,
		WindowMS:    o.at("window").duration(time.Second, time.Hour, 0).Milliseconds(),
		Least:       int(o.at("least").whole(1, 100_000, 0)),
		SlowMS:      o.at("slow").duration(100*time.Millisecond, 10*time.Second, 0).Milliseconds(),
	}
}

// schedule is the preset's name, or "list", and the waits in milliseconds.
func (v value) schedule(s notify.Schedule) (name string, waits []int64) {
	if v.given() {
		if err := v.node.Decode(&s); err != nil {
			problem := "use a preset (day, quick) or a list of waits such as [1s, 3s, 5s]"
			if errors.Is(err, notify.ErrSchedule) {
				problem = strings.TrimPrefix(err.Error(), notify.ErrSchedule.Error()+": ")
			}
			v.wrong("%s", problem)
			return "", nil
		}
	}
	for _, wait := range s {
		waits = append(waits, wait.Milliseconds())
	}
	if name = s.String(); name != "day" && name != "quick" {
		name = "list"
	}
	return name, waits
}
