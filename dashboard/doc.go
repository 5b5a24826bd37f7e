// Package dashboard is the page of the admin port: one HTML file, its style
// and its scripts, one for each part of the page, embedded as they are. There is no build step, and nothing is
// loaded from elsewhere.
//
// The page draws what the admin API says, once a second, from its stream of
// events. It speaks only to that API: script-src, style-src and connect-src
// are 'self', so no script, style or attribute of style stands in the HTML.
package dashboard
