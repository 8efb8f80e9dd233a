package access

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	stringadapter "github.com/casbin/casbin/v2/persist/string-adapter"
)

// Permission is one thing that a role may do, named as in policy.csv and the table of routes.
type Permission string

// Permissions.
const (
	UseAccount        Permission = "account.use" // one's own settings and password
	ViewOverview      Permission = "overview.view"
	ViewOrders        Permission = "order.view"
	ViewCallbacks     Permission = "callback.view"
	ViewNotifications Permission = "notification.view"
	ViewExceptions    Permission = "exception.view"
	ViewPersonal      Permission = "personal.view" // buyers' personal data, unmasked
	InspectQueues     Permission = "queue.inspect"
	ControlQueues     Permission = "queue.control" // pause and resume
	Resend            Permission = "notification.resend"
	Comment           Permission = "note.write"      // on orders and exceptions
	ShareViews        Permission = "view.share"      // of lists, and change shared ones
	QueryOrders       Permission = "order.query"     // ask a supplier about an order
	ViewAudit         Permission = "audit.view"      // of everybody
	ViewRoleAudit     Permission = "audit.view_role" // of operators who share a role
	ControlBreakers   Permission = "breaker.control" // open and close merchants' breakers
	ControlAddresses  Permission = "address.control" // enable merchants' endpoints
	PingEndpoints     Permission = "endpoint.ping"
	RotateSecret      Permission = "secret.rotate_own" // the signing secret of one's own merchant
	MakeTestKeys      Permission = "testmode.key"      // a merchant's key of test mode
	ViewAlerts        Permission = "alert.view"
	TestAlerts        Permission = "alert.test"      // send a test message to every target, or one again that was given up
	HandleAlerts      Permission = "alert.handle"    // acknowledge, assign, snooze and close incidents
	ConfigureAlerts   Permission = "alert.configure" // change when alerts fire
	ExportEvidence    Permission = "evidence.export" // one order's full history, signed
	ResendMany        Permission = "notification.resend_many"
	AssignExceptions  Permission = "exception.assign" // to an operator
	IgnoreExceptions  Permission = "exception.ignore" // close one that involves no money, or reopen it

	ViewCompensations    Permission = "compensation.view"
	RunCompensations     Permission = "compensation.run"     // one, now
	RedriveCompensations Permission = "compensation.redrive" // all that match a filter
	CancelCompensations  Permission = "compensation.cancel"

	// Decisions by two people: who may propose, and who may approve another person's proposal.
	ProposeMoney    Permission = "money.propose"
	ApproveMoney    Permission = "money.approve" // finance may approve only what a lead proposed
	ProposeSettings Permission = "settings.propose"
	ApproveSettings Permission = "settings.approve"
	ProposeBatches  Permission = "batch.propose" // those that move money also need ProposeMoney
	NoteExceptions  Permission = "exception.note"

	ViewSweeps Permission = "sweep.view"
	RunSweeps  Permission = "sweep.run" // start one now

	ManageOperators Permission = "operator.manage" // invite, change and disable operators
)

// Reserved are the permissions that only built-in roles have: who may do what is decided by these, so
// that nobody widens an own role of theirs.
var Reserved = []Permission{ManageOperators, ProposeSettings, ApproveSettings}

// Permissions lists all of them.
var Permissions = []Permission{
	UseAccount, ViewOverview, ViewOrders, ViewCallbacks, ViewNotifications, ViewExceptions, ViewPersonal, InspectQueues, ControlQueues,
	Resend, Comment, ShareViews, QueryOrders, ViewAudit, ViewRoleAudit, ControlBreakers, ControlAddresses,
	PingEndpoints, RotateSecret, MakeTestKeys, ViewAlerts, TestAlerts, HandleAlerts,
	ConfigureAlerts, ExportEvidence,
	ResendMany, AssignExceptions, IgnoreExceptions,
	ViewCompensations, RunCompensations, RedriveCompensations, CancelCompensations,
	ProposeMoney, ApproveMoney, ProposeSettings, ApproveSettings, ProposeBatches, NoteExceptions,
	ViewSweeps, RunSweeps, ManageOperators,
}

// How the policy is evaluated: a role has its own permissions and those of the roles it
// includes. Everything else is denied.
const policyModel = `
[request_definition]
r = sub, act
[policy_definition]
p = sub, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.act == p.act
`

//go:embed policy.csv
var policyRules string

// Policy holds the permissions of each role: of the built-in ones, which are compiled into the binary,
// and of those of this installation.
type Policy struct {
	granted map[string][]Permission
	own     atomic.Pointer[map[string][]Permission]
}

// NewPolicy reads the embedded policy and evaluates it once for every role and permission, so
// that a request costs only a list look-up.
func NewPolicy() (*Policy, error) {
	m, err := model.NewModelFromString(policyModel)
	if err != nil {
		return nil, fmt.Errorf("read the policy's model: %w", err)
	}
	e, err := casbin.NewEnforcer(m, stringadapter.NewAdapter(policyRules))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	p := &Policy{granted: map[string][]Permission{}}
	p.SetOwn(nil)
	for _, role := range BuiltIn {
		for _, permission := range Permissions {
			ok, err := e.Enforce(role, string(permission))
			if err != nil {
				return nil, fmt.Errorf("evaluate the policy: %w", err)
			}
			if ok {
				p.granted[role] = append(p.granted[role], permission)
			}
		}
	}
	return p, nil
}

// SetOwn replaces the own roles. Each may also use its account; reserved and unknown permissions grant
// nothing.
func (p *Policy) SetOwn(may map[string][]Permission) {
	own := make(map[string][]Permission, len(may))
	for role, given := range may {
		own[role] = slices.DeleteFunc(slices.Clone(Permissions), func(x Permission) bool {
			return x != UseAccount && (slices.Contains(Reserved, x) || !slices.Contains(given, x))
		})
	}
	p.own.Store(&own)
}

// Roles returns the names of all roles: the built-in ones, and then the own ones.
func (p *Policy) Roles() []string {
	return slices.Concat(BuiltIn, slices.Sorted(maps.Keys(*p.own.Load())))
}

// Of returns the permissions of a role; an unknown one has none.
func (p *Policy) Of(role string) []Permission {
	if granted, builtIn := p.granted[role]; builtIn {
		return granted
	}
	return (*p.own.Load())[role]
}

// RolesWith returns the roles that have the permission.
func (p *Policy) RolesWith(permission Permission) (roles []string) {
	for _, role := range p.Roles() {
		if p.Allows(Roles(role), permission) {
			roles = append(roles, role)
		}
	}
	return roles
}

// Allows reports whether one of the roles has the permission. Unknown roles have none.
func (p *Policy) Allows(roles Roles, permission Permission) bool {
	return slices.ContainsFunc(roles.Names(), func(role string) bool { return slices.Contains(p.Of(role), permission) })
}
