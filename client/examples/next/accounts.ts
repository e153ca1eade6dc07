import { createAccounts } from 'account-client/server';

/** COOKIE_DOMAIN of the service covers both hosts. ACCOUNTS_TOKEN is from `npm run service-token NAME` there. */
const { ACCOUNTS_URL = 'http://localhost:3000', ACCOUNTS_TOKEN = '', COOKIE_DOMAIN } = process.env;

export const accountsUrl = ACCOUNTS_URL;

export const accounts = createAccounts({ url: ACCOUNTS_URL, token: ACCOUNTS_TOKEN, cookieDomain: COOKIE_DOMAIN });
