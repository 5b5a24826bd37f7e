package sim

import (
	"math"
	"math/rand/v2"
)

// noiseMemory is the correlation of one step's noise with the next one's.
const noiseMemory = 0.5

// noise is what multiplies step times: log-normal with mean 1, and each step
// resembles the one before (AR(1) in the logarithm). The zero value is always
// 1.
type noise struct {
	random *rand.Rand
	sigma  float64 // of the logarithm
	x      float64 // current logarithm, before the mean is put to 1
}

// newNoise returns noise with the given standard deviation of the factor.
func newNoise(deviation float64, random *rand.Rand) noise {
	n := noise{random: random, sigma: math.Sqrt(math.Log1p(deviation * deviation))}
	if n.sigma > 0 {
		n.x = n.sigma * random.NormFloat64() // as if it had always run
	}
	return n
}

// next is the factor of the next step.
func (n *noise) next() float64 {
	if n.sigma == 0 {
		return 1
	}
	n.x = noiseMemory*n.x + math.Sqrt(1-noiseMemory*noiseMemory)*n.sigma*n.random.NormFloat64()
	return math.Exp(n.x - n.sigma*n.sigma/2) // E exp(x) = exp(σ²/2)
}
