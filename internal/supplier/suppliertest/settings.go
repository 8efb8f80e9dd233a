package suppliertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"testing"

	"backstop/internal/supplier"
)

// Settings describes the settings of one kind: an error in settings that only calls need must
// never cost a callback.
type Settings struct {
	Kind supplier.Kind
	// Bare are settings for callbacks only; Calls are those that add abilities.
	Bare, Calls map[string]any
	// WrongCalls are additions to Bare that are invalid or incomplete in settings that only
	// calls need, by the field that the error must name.
	WrongCalls map[string][]map[string]any
	// Wrong are replacements in Bare with which callbacks cannot be received.
	Wrong []map[string]any
	// Message is a genuine callback, Want its content.
	Message *supplier.Request
	Want    supplier.Callback
}

// RunSettings runs every claim as a subtest.
func RunSettings(t *testing.T, s Settings) {
	t.Helper()
	for _, c := range settingsClaims {
		t.Run(c.name, func(t *testing.T) { c.check(&maker{t, s}) })
	}
}

type settingsClaim struct {
	name  string
	check func(*maker)
}

// settingsClaims are all claims about settings.
var settingsClaims = []settingsClaim{
	{"WholeSettingsMakeAbilities", wholeMakeAbilities},
	{"WithoutAClientThereAreNone", noneWithoutClient},
	{"WrongSettingsForCallsAreNamedAndTakeCallbacks", wrongCallsTakeCallbacks},
	{"WrongSettingsForCallbacksMakeNoAdapter", wrongMakeNoAdapter},
}

// maker runs one claim.
type maker struct {
	reporter
	Settings
}

func (p *maker) make(out supplier.Client, changes ...map[string]any) (supplier.Adapter, error) {
	all := maps.Clone(p.Bare)
	for _, c := range changes {
		maps.Copy(all, c)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	a, err := p.Kind.New("settings-main", raw, out)
	if keyed, ok := a.(supplier.Keyed); ok {
		for _, k := range keyed.Keys() {
			if k.Field == "" || k.Kind == "" {
				p.Errorf("a key is described as %+v", k)
			}
		}
	}
	return a, err
}

var deaf = Client(func(*http.Request) supplier.Exchange { return supplier.Exchange{Class: supplier.ClassConnect} })

func wholeMakeAbilities(p *maker) {
	a, err := p.make(deaf, p.Calls)
	if err != nil || supplier.AbilitiesOf(a) == (supplier.Abilities{}) {
		p.Errorf("whole settings make no abilities: %v", err)
	}
	p.takesCallbacks("whole", a)
}

func noneWithoutClient(p *maker) {
	whole, err := p.make(nil, p.Calls)
	if err != nil {
		p.Errorf("whole settings: %v", err)
	}
	p.takesOnlyCallbacks("whole, without a client", whole)
	bare, err := p.make(deaf)
	if err != nil {
		p.Errorf("settings without those for calls: %v", err)
	}
	p.takesOnlyCallbacks("without those for calls", bare)
}

func wrongCallsTakeCallbacks(p *maker) {
	if len(p.WrongCalls) == 0 {
		p.Errorf("the suite names no wrong settings for calls")
	}
	for field, all := range p.WrongCalls {
		for _, change := range all {
			for _, out := range []supplier.Client{deaf, nil} {
				a, err := p.make(out, change)
				if f := supplier.AsField(err); f == nil || f.Field != field || f.Problem == "" || !f.Calls {
					p.Errorf("%s: %v; want an error for calls that names the field", field, err)
				}
				p.takesOnlyCallbacks(field, a)
			}
		}
	}
}

func wrongMakeNoAdapter(p *maker) {
	if len(p.Wrong) == 0 {
		p.Errorf("the suite names no wrong settings")
	}
	refused := func(changes ...map[string]any) {
		a, err := p.make(deaf, changes...)
		if f := supplier.AsField(err); a != nil || err == nil || f != nil && f.Calls {
			p.Errorf("callbacks cannot be taken: adapter %v, error %v", a != nil, err)
		}
	}
	for _, wrong := range p.Wrong {
		refused(wrong)
		refused(p.Calls, wrong)
		for _, all := range p.WrongCalls {
			for _, change := range all {
				refused(change, wrong)
			}
		}
	}
}

func (p *maker) takesOnlyCallbacks(name string, a supplier.Adapter) {
	p.Helper()
	if a != nil && supplier.AbilitiesOf(a) != (supplier.Abilities{}) {
		p.Errorf("%s: abilities %+v", name, supplier.AbilitiesOf(a))
	}
	p.takesCallbacks(name, a)
}

// takesCallbacks checks that, for callbacks, the adapter behaves like the one with bare
// settings.
func (p *maker) takesCallbacks(name string, a supplier.Adapter) {
	p.Helper()
	if a == nil {
		p.Errorf("%s: no adapter", name)
		return
	}
	if got, err := a.Parse(p.Message, &supplier.Trace{}); err != nil || !sameCallback(got, p.Want) {
		p.Errorf("%s: the callback is read as %+v, %v", name, got, err)
	}
	bare, err := p.make(nil)
	if err != nil || a.Account() != bare.Account() || !maps.Equal(a.Identity(), bare.Identity()) ||
		!reflect.DeepEqual(a.Reply(supplier.Taken), bare.Reply(supplier.Taken)) {
		p.Errorf("%s: another account, identity or answer than without calls (%v)", name, err)
	}
}
