package app

import (
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/pause"
)

// What is paused waits in the running program, and is an alert.
func TestPausedWorkWaitsAndAlerts(t *testing.T) {
	t.Parallel()
	a := opened(t)
	registry := act.New(a.db, a.audit, newPolicy(), a.pauses.Acts()...)
	run := func(kind, name string) {
		t.Helper()
		_, err := registry.Run(t.Context(), act.Call{
			Kind: kind, By: act.Actor{Name: "operator:li.hang", ID: 1, Roles: access.Ops},
			Ref: act.Ref{ID: name}, Reason: "the supplier migrates",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	levels := func() map[string]int64 {
		of := map[string]int64{}
		for _, r := range a.readShared(t.Context()) {
			if r.Rule == alert.QueuePaused && !r.Rest {
				of[r.Subject] = r.Value
			}
		}
		return of
	}
	if a.compensationsWait(1) {
		t.Error("compensations wait before they are paused")
	}
	run(pause.PauseAct, pause.Compensations)
	if !a.compensationsWait(1) {
		t.Error("paused compensations run")
	}
	if of := levels(); len(of) != 2 || of[pause.Compensations] != 100 || of[pause.Notifications] != 0 {
		t.Errorf("paused, the alert reads %v", of)
	}
	run(pause.ResumeAct, pause.Compensations)
	if of := levels(); a.compensationsWait(1) || len(of) != 2 || of[pause.Compensations] != 0 {
		t.Errorf("resumed, the alert reads %v", of)
	}
}
