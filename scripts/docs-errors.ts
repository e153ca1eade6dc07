import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { restProcedures } from '../routers/procedures.ts';
import { type ErrorCode, errorCodes, ServiceError } from '../server/errors.ts';
import { generatedPage, table } from './generated-page.ts';

/** `npm run docs:errors`: docs/errors, a page for each code, from server/errors.ts and the procedures. */

/** `from`: the calls, where the procedures do not list the code. */
const causes: Record<ErrorCode, { when: string; next: string; from?: string }> = {
  VALIDATION_FAILED: {
    when: 'The input breaks a rule, or the request itself is malformed (JSON, Host, query).',
    next: 'Show the message of each field in `details` beside it; `rule` and `rules` are identifiers: map them to your own translations. Do not repeat the request unchanged.',
    from: 'every call',
  },
  INVALID_TOKEN: {
    when: 'A mailed token is wrong, used or expired.',
    next: 'Offer to request a new link (`auth.forgotPassword`, `auth.resendVerification`).',
  },
  INVALID_STATE: {
    when: 'A login at a provider came back to another browser, too late, twice or without its cookies.',
    next: 'Begin the login again. Clients without a browser must send the state cookie and `auth_browser` back.',
  },
  INVALID_CREDENTIALS: {
    when: 'Email and password do not match, the account does not exist or has no password, or the current password is wrong.',
    next: 'Ask again. Offer `auth.forgotPassword`; the response does not tell whether there is an account.',
  },
  UNAUTHENTICATED: {
    when: 'There is no session or it has ended, or the pending login, service token or access key is not valid.',
    next: 'Send the user to the log-in page, with `returnTo`.',
    from: 'every call that needs a session or a service token, and',
  },
  INVALID_CODE: {
    when: 'The code of the app, the recovery code or the passkey is wrong, used or expired.',
    next: 'Ask for another one. The fifth wrong factor of a login ends it: the next is `UNAUTHENTICATED`.',
  },
  CHALLENGE_REQUIRED: {
    when: '`CHALLENGE` is on, and the call needs a proof of work: always, or because half of a limit is used.',
    next: 'The typed client solves it and repeats the call by itself. Others solve `details.challenge` with any solver of ALTCHA (SHA-256) and repeat the call with its payload, in base64, in the header `Challenge-Solution`, within five minutes. A solution is for one call of one procedure.',
  },
  EMAIL_NOT_VERIFIED: {
    when: 'The password is right, and the email address is not confirmed.',
    next: 'Ask the user to open the mailed link, and offer `auth.resendVerification`.',
  },
  FORBIDDEN: {
    when: 'The role does not allow the call; or a link to a new address is opened in another browser; or a login method is unproven.',
    next: 'Show the message: it says what is missing. Do not repeat the request unchanged.',
  },
  REAUTHENTICATION_REQUIRED: {
    when: 'The user last entered a credential in this session more than ten minutes ago.',
    next: 'Ask for a credential (`auth.reauthenticate`, or `/auth/{provider}?reauthenticate=1`), then repeat the request.',
  },
  INSUFFICIENT_SCOPE: {
    when: 'The access key or token is valid and does not have the scope of the call, or the call takes sessions only.',
    next: 'The header `WWW-Authenticate` names the scope. Create a key with it; a call without a scope needs a session.',
    from: 'every call that needs a session',
  },
  SECOND_FACTOR_REQUIRED: {
    when: 'The credential is right, and the user has an authenticator app.',
    next: 'Ask for a second factor. `details.methods.message` is a list such as `totp,recovery`; call `auth.secondFactor` with the cookie `auth_pending`.',
  },
  REGISTRATION_CLOSED: {
    when: '`REGISTRATION` allows no account with this address.',
    next: 'Show the message. A user with an invitation can register, unless `REGISTRATION` is `closed`.',
  },
  ACCOUNT_DELETED: {
    when: 'The credential is right, and the user has deleted the account.',
    next: 'Offer `account.restore`, or `/auth/{provider}?restore=1`.',
  },
  ACCOUNT_BLOCKED: {
    when: 'The credential is right, and an administrator has blocked the account.',
    next: 'Show the message and the support address. A new password does not help.',
  },
  ORIGIN_MISMATCH: {
    when: 'A browser sent a change from an origin that is not allowed, or a link on another site began a protected flow.',
    next: 'Add the origin to `ALLOWED_ORIGINS`, or begin the flow on a page of the service.',
    from: 'every call that changes something',
  },
  NOT_FOUND: {
    when: 'The path, method, procedure or row does not exist, or is not shown to this caller.',
    next: 'Treat the resource as deleted. A wrong HTTP method also gets this code.',
    from: 'every path, and',
  },
  REQUEST_TIMEOUT: {
    when: 'The body took longer than 60 s, or a file arrived at less than 20 kB/s.',
    next: 'Send it again on a better connection.',
    from: 'every call with a body',
  },
  OTHER_USER: {
    when: 'The session is of another user than the header `Expected-User` names: another tab has logged in.',
    next: 'Load the page again.',
    from: 'every call that needs a session, except `profile.get`',
  },
  EMAIL_TAKEN: {
    when: 'Another account has the address, or reserves it while a change of email can be undone.',
    next: 'Let the user log in or enter another address.',
  },
  FIELD_TAKEN: {
    when: 'Another account has the value of a unique field of `PROFILE_FIELDS`; `details` names the field, with the rule `taken`. Spellings that differ in case only are one value.',
    next: 'Ask for another value.',
    from: '`service.setFields`, and',
  },
  IDENTITY_TAKEN: {
    when: 'The identity to link belongs to another account.',
    next: 'Ask the user to log in to that account and unlink it there.',
    from: '`GET /auth/{provider}/callback`; a browser is sent to `/dashboard/security?error=identity_taken`',
  },
  UNPROVEN_ACCOUNT: {
    when: 'An account with an unverified email or unproven login methods is to become an administrator.',
    next: 'Ask its user to verify the email, or to set a new password by a mailed link.',
  },
  LAST_ADMINISTRATOR: {
    when: 'The act would leave no administrator who can log in.',
    next: 'Make another administrator first.',
  },
  LAST_LOGIN_METHOD: {
    when: 'The identity or passkey is the only way to log in.',
    next: 'Ask the user to add another login method first.',
  },
  TOO_MANY_KEYS: {
    when: 'The user has 50 access keys.',
    next: 'Revoke one first.',
  },
  TOO_MANY_WEBHOOKS: {
    when: 'The service has its maximum number of webhooks.',
    next: 'Delete one that is no longer used.',
  },
  TOO_MANY_APPLICATIONS: {
    when: 'The service has its maximum number of applications.',
    next: 'Delete one that is no longer used.',
  },
  WEBHOOK_DISABLED: {
    when: 'The webhook to redeliver to is disabled.',
    next: 'Enable it with `webhooks.update`, then redeliver.',
  },
  UPLOAD_PENDING: {
    when: 'The file waits for the scanner (`SCAN_URL`), so it has no address.',
    next: 'Try again after some seconds; `upload.list` shows its state.',
    from: 'of other services, `service.fileAddress`, and',
  },
  UPLOAD_QUARANTINED: {
    when: 'The scanner found malware in the file. It is deleted after 30 days, and not before.',
    next: 'Show the message. The user can upload another file.',
    from: 'of other services, `service.fileAddress`, and',
  },
  EVENTS_EXPIRED: {
    when: 'Events after the number `after` are older than `ACTIVITY_DAYS` and deleted.',
    next: 'Read the users again (`service.users`), then the events after 0.',
  },
  PAYLOAD_TOO_LARGE: {
    when: 'A JSON body has more than 100 kB, or an export is too large for one response over tRPC.',
    next: 'Send less; use REST for the export, which streams it.',
    from: 'every call with a body',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    when: 'The body has another content type than the call reads.',
    next: 'Send `application/json`, or a form where a file is expected.',
    from: 'every call with a body',
  },
  RATE_LIMITED: {
    when: 'A limit is reached.',
    next: 'Wait for `Retry-After` seconds (`retryAfter` in the client). The RateLimit headers have the limit.',
  },
  INTERNAL: {
    when: 'Something unexpected failed. The message never says what.',
    next: 'Report the `X-Request-Id` of the response: the log has the cause under it. The request may have taken effect.',
    from: 'every call',
  },
  SERVICE_UNAVAILABLE: {
    when: 'A database, a store or a storage does not answer, or a queue is full.',
    next: 'Repeat the request after `Retry-After` seconds. The request may have taken effect.',
    from: 'every call',
  },
};

function callsWith(code: ErrorCode): string {
  const own = restProcedures.filter(({ openapi }) => openapi.errors.includes(code)).map(({ name }) => `\`${name}\``);
  const { from } = causes[code];
  if (from === undefined) return own.join(', ');
  return from.endsWith(', and') ? `${from} ${own.join(', ')}` : from;
}

const errors = errorCodes.map((code) => new ServiceError(code));
const overview = table(
  ['Status', 'Code', 'Message'],
  errors.map(({ status, code, message }) => [String(status), `[${code}](${code}.md)`, message]),
);

export const errorsPage = generatedPage('errors/README.md', overview);

/** The page of each code, by its file in docs/errors. */
export const codePages: Record<string, string> = Object.fromEntries(
  errors.map(({ code, status, message }) => {
    const { when, next } = causes[code];
    const page = [
      `# ${code}`,
      `Status ${status}: “${message}”`,
      [`- **When:** ${when}`, `- **Then:** ${next}`, `- **From:** ${callsWith(code)}`].join('\n'),
      '[All codes](README.md)',
    ].join('\n\n');
    return [`${code}.md`, `${page}\n`];
  }),
);

if (import.meta.main) {
  const folder = join(import.meta.dirname, '../docs/errors');
  for (const file of readdirSync(folder).filter((file) => file !== 'README.md')) rmSync(join(folder, file));
  for (const [file, page] of Object.entries(codePages)) writeFileSync(join(folder, file), page);
  errorsPage.write();
}
