package arena

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Lengths is how long prompts, or answers, are, in tokens.
type Lengths struct {
	Kind LengthKind
	Mean float64 // of Bimodal: the length of the short ones

	// Sigma is the standard deviation of ln(length) of LogNormal: the longest
	// tenth is 3.6 times the median at 1. 0 = 0.8.
	Sigma float64

	// Long is the length of the long ones of Bimodal, Share of all.
	Long, Share float64
}

// LengthKind names a distribution.
type LengthKind uint8

// The distributions.
const (
	LogNormal LengthKind = iota // around Mean, with a long tail
	Fixed                       // all of Mean
	Bimodal                     // two lengths
)

const (
	defaultSigma = 0.8 // answers of both of Azure's traces of 2023: 0.85; prompts: 0.99 and 1.36
	maxSigma     = 2
	maxLength    = 1_000_000 // tokens
	maxTail      = 20        // times the mean: no freak decides a short run
)

// ParseLengths reads 1000 (log-normal around it), lognormal:1000:1.2 (with
// sigma), fixed:1000, or bimodal:200:4000:0.2 (a fifth of them long).
func ParseLengths(text string) (Lengths, error) {
	words := strings.Split(text, ":")
	kind, numbers := words[0], words[1:]
	if len(words) == 1 {
		kind, numbers = "lognormal", words
	}
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || !(v >= 0 && v <= maxLength) {
			return Lengths{}, fmt.Errorf("%.20q is no number from 0 to %d; %s", n, maxLength, lengthForms)
		}
		values[i] = v
	}
	var l Lengths
	switch {
	case kind == "lognormal" && len(values) == 1:
		l = Lengths{Kind: LogNormal, Mean: values[0]}
	case kind == "lognormal" && len(values) == 2 && values[1] > 0 && values[1] <= maxSigma:
		l = Lengths{Kind: LogNormal, Mean: values[0], Sigma: values[1]}
	case kind == "fixed" && len(values) == 1:
		l = Lengths{Kind: Fixed, Mean: values[0]}
	case kind == "bimodal" && len(values) == 3 && values[2] <= 1:
		l = Lengths{Kind: Bimodal, Mean: values[0], Long: values[1], Share: values[2]}
	default:
		return Lengths{}, fmt.Errorf("%.40q says no lengths; %s", text, lengthForms)
	}
	if l.Mean < 1 || l.Kind == Bimodal && l.Long < 1 {
		return Lengths{}, errors.New("a length is less than 1 token; " + lengthForms)
	}
	return l, nil
}

const lengthForms = "write tokens, such as 1000, fixed:1000, lognormal:1000:0.8 or bimodal:200:4000:0.2"

// String describes the lengths.
func (l Lengths) String() string {
	switch l.Kind {
	case Fixed:
		return fmt.Sprintf("%.4g", l.Mean)
	case Bimodal:
		return fmt.Sprintf("%.4g, and %.4g for %.3g %%", l.Mean, l.Long, 100*l.Share)
	}
	return fmt.Sprintf("about %.4g (log-normal, sigma %.2g)", l.Mean, l.sigma())
}

func (l Lengths) sigma() float64 {
	if l.Sigma == 0 {
		return defaultSigma
	}
	return l.Sigma
}

// Draw returns a length of at least 1.
func (l Lengths) Draw(rng *rand.Rand) int { return l.draw(rng) }

// draw is Draw.
func (l Lengths) draw(rng *rand.Rand) int {
	x := l.Mean
	switch l.Kind {
	case Bimodal:
		if rng.Float64() < l.Share {
			x = l.Long
		}
	case LogNormal:
		s := l.sigma()
		x = min(l.Mean*math.Exp(s*rng.NormFloat64()-s*s/2), maxTail*l.Mean) // the mean of e^(s·z) is e^(s²/2)
	}
	return max(int(math.Round(x)), 1)
}
