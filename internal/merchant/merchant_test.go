package merchant_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/merchant"
)

func codes(all []*merchant.Merchant) (codes []string) {
	for _, m := range all {
		codes = append(codes, m.Code)
	}
	return codes
}

func TestAMerchantIsFoundByIDCodeAndKey(t *testing.T) {
	t.Parallel()
	one, two := &merchant.Merchant{ID: 1, Code: "m1"}, &merchant.Merchant{ID: 2, Code: "m2"}
	book := merchant.NewDirectory([]*merchant.Merchant{one, two}, map[int64]string{1: "hash-1", 2: "hash-2"})
	for _, m := range []struct {
		want *merchant.Merchant
		id   int64
		text string
	}{{one, 1, "1"}, {two, 2, "2"}, {nil, 3, "3"}} {
		if book.ByID(m.id) != m.want || book.ByCode("m"+m.text) != m.want || book.ByKeyHash("hash-"+m.text) != m.want {
			t.Errorf("%d: found are %v, %v, %v", m.id, book.ByID(m.id), book.ByCode("m"+m.text), book.ByKeyHash("hash-"+m.text))
		}
	}
}

func TestAKeyFindsNobodyWhoHasNoneOrIsDisabled(t *testing.T) {
	t.Parallel()
	off := &merchant.Merchant{ID: 1, Code: "off", Disabled: true}
	keyless := &merchant.Merchant{ID: 2, Code: "keyless"}
	book := merchant.NewDirectory([]*merchant.Merchant{off, keyless}, map[int64]string{1: "hash", 2: ""})
	if m := book.ByKeyHash("hash"); m != nil {
		t.Errorf("the key of a disabled merchant finds %v", m)
	}
	if m := book.ByKeyHash(""); m != nil {
		t.Errorf("no key finds %v", m)
	}
	if book.ByCode("off") != off || book.ByID(1) != off || book.ByCode("keyless") != keyless {
		t.Error("they are not found by their codes")
	}
}

func TestABookOfNothingFindsNothing(t *testing.T) {
	t.Parallel()
	book := merchant.NewDirectory(nil, nil)
	if book.ByID(0) != nil || book.ByCode("") != nil || book.ByKeyHash("") != nil || book.Subscriber("") != nil ||
		book.Broken(0) || len(book.AllBroken()) > 0 || len(book.Subscribers("", "")) > 0 {
		t.Error("it finds a merchant")
	}
}

// A system of the subscriber sells nothing: what has its code or its key is no merchant.
func TestASystemOfTheHouseIsNoMerchant(t *testing.T) {
	t.Parallel()
	seller, subscriber := &merchant.Merchant{ID: 1, Code: "data"}, &merchant.Merchant{ID: 2, Code: "data", Subscriber: true}
	for _, all := range [][]*merchant.Merchant{{seller, subscriber}, {subscriber, seller}} {
		book := merchant.NewDirectory(all, map[int64]string{2: "hash"})
		if book.ByCode("data") != seller || book.Subscriber("data") != subscriber || book.ByID(2) != subscriber ||
			book.ByKeyHash("hash") != nil {
			t.Errorf("found are %v by code, %v by id, %v by key", book.ByCode("data"), book.ByID(2), book.ByKeyHash("hash"))
		}
	}
}

func TestASystemOfTheHouseIsToldOfTheMerchantsAndEventsItFollows(t *testing.T) {
	t.Parallel()
	paid := merchant.Settings{Events: []string{"order.paid"}}
	book := merchant.NewDirectory([]*merchant.Merchant{
		{ID: 1, Code: "m1", Settings: paid},
		{ID: 2, Code: "all", Subscriber: true},
		{ID: 3, Code: "m1-all", Subscriber: true, Follows: []string{"m1"}},
		{ID: 4, Code: "all-paid", Subscriber: true, Settings: paid},
		{ID: 5, Code: "m2-paid", Subscriber: true, Follows: []string{"m2", "m3"}, Settings: paid},
		{ID: 6, Code: "off", Subscriber: true, Disabled: true},
		{ID: 7, Code: "unread", Subscriber: true, Broken: true, Follows: []string{"m9"}},
		{ID: 8, Code: "off-unread", Subscriber: true, Broken: true, Disabled: true},
	}, nil)
	for _, c := range []struct{ code, event, want string }{
		{"m1", "order.paid", "all m1-all all-paid unread"},
		{"m1", "order.closed", "all m1-all unread"},
		{"m2", "order.paid", "all all-paid m2-paid unread"},
		{"m3", "order.closed", "all unread"},
		{"m", "order.pai", "all unread"}, // no part of a word counts
	} {
		if got := strings.Join(codes(book.Subscribers(c.code, c.event)), " "); got != c.want {
			t.Errorf("of %s of %s are notified %q, want %q", c.event, c.code, got, c.want)
		}
	}
	// Whether it is among them is unknown while it cannot be read; what it follows is not.
	if m := book.ByID(7); m.Subscribes("m1", "order.paid") || !m.Subscribes("m9", "order.paid") {
		t.Error("what the unread one follows is not looked at")
	}
	if book.Subscriber("off") != nil || book.ByID(6) == nil {
		t.Error("a disabled one is found by its code, or not by its id")
	}
}

func TestBrokenAreThoseThatCannotBeReadAndListedThoseThatAreLockedToo(t *testing.T) {
	t.Parallel()
	book := merchant.NewDirectory([]*merchant.Merchant{
		{ID: 1, Code: "well"},
		{ID: 2, Code: "locked", Locked: true},
		{ID: 3, Code: "broken", Broken: true},
		{ID: 4, Code: "both", Broken: true, Locked: true},
		{ID: 5, Code: "erp", Subscriber: true, Broken: true},
	}, nil)
	if got := codes(book.AllBroken()); !slices.Equal(got, []string{"locked", "broken", "both", "erp"}) {
		t.Errorf("listed are %q", got)
	}
	for id, broken := range map[int64]bool{1: false, 2: false, 3: true, 4: true, 5: true, 6: false} {
		if book.Broken(id) != broken {
			t.Errorf("%d counts as broken: %v", id, !broken)
		}
	}
	if book.ByCode("broken") == nil {
		t.Error("a broken one is not found")
	}
}

func TestAMerchantIsToldOfAllEventsOrOfThoseThatItNames(t *testing.T) {
	t.Parallel()
	all, paid := &merchant.Merchant{}, &merchant.Merchant{Settings: merchant.Settings{Events: []string{"order.paid", "order.failed"}}}
	for event, wants := range map[string]bool{"order.paid": true, "order.failed": true, "order.closed": false, "order": false, "": false} {
		if !all.Wants(event) || paid.Wants(event) != wants {
			t.Errorf("%q: without types: %v; with other types: %v", event, all.Wants(event), paid.Wants(event))
		}
	}
}

// desk has a plain address, one for each of two channels and one for paid orders alone.
func desk() *merchant.Merchant {
	s := merchant.Settings{
		URLs: []string{"https://a.example", "https://b.example", "https://a.example"}, Format: "standard", TimeoutMS: 1500,
		Endpoints: []merchant.Endpoint{
			{Name: "paid", Channel: "chat", URL: "https://chat.example", Events: []string{"order.paid"}},
			{Name: "log", Channel: "mail", URL: "mail@example", DigestMS: 60_000},
			{Name: "log2", Channel: "mail", URL: "mail2@example"},
		},
	}
	return &merchant.Merchant{Settings: s, Endpoints: s.Addresses()}
}

func TestPlainAddressesComeFirstAndEachOnce(t *testing.T) {
	t.Parallel()
	m := desk()
	var names []string
	for _, e := range m.Endpoints {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"https://a.example", "https://b.example", "paid", "log", "log2"}) {
		t.Errorf("the addresses are %q", names)
	}
	if e := m.Endpoints[0]; e.Channel != merchant.WebhookChannel || e.URL != e.Name || e.Weight != 1 || e.Format != "standard" ||
		!e.Takes("anything") {
		t.Errorf("a plain one is %+v", e)
	}
	if len(merchant.Settings{}.Addresses()) != 0 {
		t.Error("who has none has some")
	}
}

func TestAnAddressIsFoundByItsName(t *testing.T) {
	t.Parallel()
	m := desk()
	if e := m.Endpoint("log"); e != &m.Endpoints[3] {
		t.Errorf("found is %+v", e)
	}
	if e := m.Endpoint("none"); e != nil {
		t.Errorf("found is %+v", e)
	}
}

func TestChannelsAreThoseWhoseAddressesTakeTheEvent(t *testing.T) {
	t.Parallel()
	m := desk()
	if got := m.Channels("order.paid"); !slices.Equal(got, []string{"webhook", "chat", "mail"}) {
		t.Errorf("a paid order is sent by %q", got)
	}
	if got := m.Channels("order.closed"); !slices.Equal(got, []string{"webhook", "mail"}) {
		t.Errorf("a closed order is sent by %q", got)
	}
}

// An address may be one of several of its channel: the first one that takes the event
// decides on the digest for all of them.
func TestTheFirstAddressOfAChannelSaysHowLongEventsAreGathered(t *testing.T) {
	t.Parallel()
	m := desk()
	if d := m.Digest("mail", "order.paid"); d != time.Minute {
		t.Errorf("mail is gathered for %v", d)
	}
	if m.Digest("webhook", "order.paid") != 0 || m.Digest("chat", "order.closed") != 0 || m.Digest("none", "order.paid") != 0 {
		t.Error("what is sent at once is gathered")
	}
	for _, c := range []struct {
		channel, endpoint string
		want              bool
	}{
		{"mail", "", true},
		{"mail", "log", true},
		{"mail", "log2", false},
		{"webhook", "log", false},
		{"chat", "", false},
		{"mail", "none", false},
	} {
		if got := m.Digests(c.channel, c.endpoint, "order.paid"); got != c.want {
			t.Errorf("an event for %s %q is put into a digest: %v", c.channel, c.endpoint, got)
		}
	}
}

// An address may hold a token, so that it is no name to show.
func TestPeopleSeeAnAddressByItsNameAndNeverByItsURL(t *testing.T) {
	t.Parallel()
	one := merchant.Endpoint{Name: "https://a.example/?token=abc", URL: "https://a.example/?token=abc"}
	other := merchant.Endpoint{Name: "https://a.example/?token=abd", URL: "https://a.example/?token=abd"}
	if key := one.Key(); strings.Contains(key, "abc") || strings.Contains(key, "example") || key != one.Key() || key == other.Key() ||
		key == "" {
		t.Errorf("it is shown as %q, another one as %q", key, other.Key())
	}
	if named := (&merchant.Endpoint{Name: "desk", URL: one.URL}); named.Key() != "desk" {
		t.Errorf("a named one is shown as %q", named.Key())
	}
}

func TestAnAttemptTakesAsLongAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	if d := desk().Timeout(); d != 1500*time.Millisecond {
		t.Errorf("it may take %v", d)
	}
}
