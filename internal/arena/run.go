package arena

import (
	"context"
	"errors"
)

// Run plays s to its end.
func Run(ctx context.Context, s Scenario) (Result, error) {
	return Result{}, errors.New("arena: not built yet")
}
