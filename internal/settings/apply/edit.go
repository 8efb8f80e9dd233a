package apply

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
	"gopkg.in/yaml.v3"
)

// EditAct is the act by which an operator changes one object, in the console or by the API.
const EditAct = "settings.edit"

// Edit changes one object.
type Edit struct {
	Object settings.Object
	// Entry is the object in YAML, as the apply file has it. A field that it leaves out keeps its value,
	// null returns to the default, and "stored:FIELD" is a stored secret.
	Entry string
	// Version is that of the settings that the caller saw; 0 = any.
	Version int64
}

// Plan is what an edit would do, or did.
type Plan struct {
	Object      settings.Object
	Version     int64 // of the settings before it
	Differences []Difference
	Lines       []string // as the command apply reports it; empty in a dry run
	Approvals   []string // public ids of the proposals for what waits
	What        string   // settings.Created, settings.Changed or settings.Unchanged
}

// Difference is one field, with old and new as in a dry run of the command.
type Difference struct {
	Field, Old, New string
	Waits           bool // for a second person
}

// editParams are the parameters of the act; its Ref is the object.
type editParams struct {
	Entry   string `json:"entry" kind:"text" required:"true" max:"1000000"`
	Version int64  `json:"version" max:"9007199254740992"`
}

// Preview returns what an edit would do. Errors: *Invalid, act.ErrNotFound, act.ErrChanged.
func Preview(ctx context.Context, env Env, edit Edit) (*Plan, error) {
	stored, err := settings.Read(ctx, env.settings())
	if err != nil {
		return nil, err
	}
	d, err := env.edit(ctx, env.settings(), stored, edit)
	if err != nil {
		return nil, err
	}
	return d.plan(), nil
}

// plan describes the only change of a declaration.
func (d *declaration) plan() *Plan {
	c, w := d.changes[0], d.waiting(d.changes[0].Object)
	if w != nil {
		c = w.change
	}
	p := &Plan{Object: c.Object, Version: d.stored.Version(), What: c.Outcome(false).What}
	if p.What == settings.Unchanged {
		return p
	}
	for _, x := range c.Diff() {
		p.Differences = append(p.Differences, Difference{x.Field, x.Old, x.New, w != nil && waiting(w.fields, x) != ""})
	}
	return p
}

// edit compares an edit with the stored settings.
func (e Env) edit(ctx context.Context, env settings.Env, stored *settings.Stored, edit Edit) (*declaration, error) {
	s, _, ok := ObjectOf(edit.Object.String())
	if !ok {
		return nil, act.ErrNotFound
	}
	if edit.Version != 0 && edit.Version != stored.Version() {
		return nil, act.ErrChanged
	}
	is, err := e.entry(ctx, stored, s, edit.Object)
	if err != nil {
		return nil, err
	}
	text, err := s.file(edit, is)
	if err != nil {
		return nil, err
	}
	d, err := declare(env, File{Name: edit.Object.String(), Text: text}, &keyFiles{kept: is.secrets}, stored)
	if err == nil {
		err = d.check()
	}
	if err == nil {
		err = d.books(ctx)
	}
	if err == nil {
		err = d.split(ctx)
	}
	return d, s.within(err)
}

// file returns an apply file with the edited object. What a file must have, an edit may leave out.
func (s Section) file(edit Edit, is *Entry) ([]byte, error) {
	var document yaml.Node
	err := yaml.Unmarshal([]byte(edit.Entry), &document)
	entry := mapping()
	switch {
	case err != nil: // the library's text may quote a secret
		return nil, invalidFields("", "not valid YAML: fix it, or put the value in quotes")
	case document.Kind == yaml.DocumentNode && document.Content[0].Kind == yaml.MappingNode:
		entry.Content = document.Content[0].Content
	case document.Kind == yaml.DocumentNode:
		return nil, invalidFields("", "must be a set of named fields")
	}
	fields, values := s.identity(edit.Object)
	own := mapping()
	for i, field := range fields {
		put(own, field, node(values[i]))
	}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		name, v := entry.Content[i], entry.Content[i+1]
		if at := slices.Index(fields, name.Value); at < 0 {
			own.Content = append(own.Content, name, v)
		} else if v.Value != values[at] {
			return nil, invalidFields(name.Value, "must be "+values[at]+": a code never changes")
		}
	}
	for _, f := range settings.Fields(s.Type) {
		needed := f.Need != "" || f.Word == "config"
		if v := nodeAt(is.Fields, f.Word); is.Stored && needed && v != nil && nodeAt(own, f.Word) == nil {
			put(own, f.Word, v)
		}
	}
	top := mapping()
	if !s.One {
		own = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{own}}
	}
	put(top, s.Word, own)
	return yaml.Marshal(top)
}

func invalidFields(field, problem string) error {
	return &Invalid{Problems: []string{problem}, Fields: []FieldProblem{{field, problem}}}
}

// within makes the paths of problems those of the object.
func (s Section) within(err error) error {
	var invalid *Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	for i := range invalid.Fields {
		f := &invalid.Fields[i]
		f.Field = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(f.Field, s.Word), "[0]"), ".")
	}
	return err
}

// EditActs returns the act that makes an edit. What waits for a second person is proposed after the
// commit, by Outcome.After, which returns a *Plan.
func EditActs(env Env) []act.Kind {
	x := editor{env}
	return []act.Kind{{
		Name: EditAct, Object: ChangeObject, Permission: access.ProposeSettings, Fresh: true, Params: act.ParamsOf[editParams](),
		Load: act.ByID(x.load), Do: act.Each(x.do),
	}}
}

type editor struct{ env Env }

// load finds the object, which may be new, and locks the settings against changes.
func (x editor) load(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
	if _, _, ok := ObjectOf(id); !ok {
		return act.Subject{}, act.ErrNotFound
	}
	s, err := decided{env: x.env}.load(ctx, q, id)
	if errors.Is(err, act.ErrNotFound) {
		return act.Subject{ID: id}, nil
	}
	return s, err
}

func (x editor) do(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (out act.Outcome, err error) {
	env := x.env.settings()
	if env.Keys, err = settings.UseKeysIn(ctx, tx, env.Keys); err != nil {
		return out, err
	}
	stored, err := settings.ReadIn(ctx, env, tx)
	if err != nil {
		return out, err
	}
	p := in.Params.(editParams)
	_, object, _ := ObjectOf(s.ID)
	edit := Edit{Object: object, Entry: p.Entry, Version: p.Version}
	d, err := x.env.edit(ctx, env, stored, edit)
	if err != nil {
		return out, err
	}
	if d.widensOwn(in.By) {
		return out, access.ErrSelf
	}
	plan := d.plan()
	outcomes, err := stored.Write(ctx, tx, d.changes, false, settings.Cause{Actor: in.By.Name, Reason: in.Reason})
	if err != nil {
		return out, err
	}
	for _, o := range d.reported(outcomes) {
		plan.Lines = append(plan.Lines, o.String())
	}
	out.Details = settings.Details(d.changes, outcomes)
	out.SkipAudit = len(out.Details) == 0
	out.After = func(ctx context.Context) (any, error) {
		if len(d.waits) == 0 {
			return plan, nil
		}
		edit.Version = 0
		return plan, x.propose(ctx, in, edit, plan)
	}
	return out, nil
}

// widensOwn reports whether a role is changed that the editor has.
func (d *declaration) widensOwn(by act.Actor) bool {
	return slices.ContainsFunc(d.changes, func(c settings.Change) bool {
		_, role := c.After.(*settings.Role)
		return role && by.Roles.Has(c.Object.ID)
	})
}

// propose proposes what waits for a second person.
func (x editor) propose(ctx context.Context, in act.Input, edit Edit, plan *Plan) error {
	var printed bytes.Buffer
	env := x.env
	env.Out = &printed
	p := &proposer{env: env, by: in.By, reason: in.Reason, made: map[settings.Object]bool{}, ids: &plan.Approvals}
	err := retryOnConflict(ctx, File{Name: edit.Object.String()}, func() error {
		stored, err := settings.Read(ctx, env.settings())
		if err != nil {
			return err
		}
		d, err := env.edit(ctx, env.settings(), stored, edit)
		if err != nil {
			return err
		}
		return p.propose(ctx, d)
	})
	plan.Lines = append(plan.Lines, strings.FieldsFunc(printed.String(), func(c rune) bool { return c == '\n' })...)
	return err
}
