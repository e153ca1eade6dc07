/** The maxima of webhooks and applications. Webhooks and the logout addresses of applications share one queue of deliveries. */
export const MAX_WEBHOOKS = 50;
export const MAX_APPLICATIONS = 100;
