package gateway

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAnUpstreamTimerCancelsThePhaseThatTakesTooLong(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		name string
		do   func(w *upstreamTimer)
		at   time.Duration // when it cancels; 0 = never
		want error
	}{
		{"first phase", func(*upstreamTimer) {}, 10 * time.Second, errFirstByte},
		{"next phase", func(w *upstreamTimer) { w.restart(time.Now().Add(3*time.Second), &other) }, 3 * time.Second, other},
		{"extended", func(w *upstreamTimer) {
			for range 8 {
				w.extend(time.Now().Add(10 * time.Second))
				<-time.After(5 * time.Second)
			}
		}, 45 * time.Second, errFirstByte},
		{"paused, then over", func(w *upstreamTimer) { w.pause() }, time.Minute, errTotal},
		{"paused, then on", func(w *upstreamTimer) {
			w.pause()
			<-time.After(20 * time.Second)
			w.extend(time.Now().Add(10 * time.Second))
		}, 30 * time.Second, errFirstByte},
		{"stopped", func(w *upstreamTimer) { w.stop() }, 0, nil},
		{"whole request", func(w *upstreamTimer) { w.restart(time.Now().Add(time.Hour), &other) }, time.Minute, errTotal},
	} {
		bubble(t, c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			start := time.Now()
			w := startUpstreamTimer(start, start.Add(time.Minute), 10*time.Second, &errFirstByte, cancel)
			defer w.stop()
			c.do(w)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Minute):
			}
			if c.at == 0 {
				if ctx.Err() != nil {
					t.Fatalf("cancelled after %v, want never", time.Since(start))
				}
				return
			}
			if got := context.Cause(ctx); got != c.want {
				t.Errorf("cancelled because of %v, want %v", got, c.want)
			}
			if got := time.Since(start); got != c.at {
				t.Errorf("cancelled after %v, want %v", got, c.at)
			}
		})
	}
}
