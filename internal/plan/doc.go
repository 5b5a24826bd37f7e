// Package plan answers what a fleet can carry: it plays a load against the
// backends of a configuration, in virtual time and with the real router, and says
// whether floors are kept, what users get, what each backend carries and what it
// costs. Nothing is sent anywhere but the question for learned curves.
//
// A Question is what the flags of pacer plan say. Its mistakes are told in their
// words.
package plan
