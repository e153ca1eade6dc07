import { createServiceClient, createSessionChecker, isServiceError, sessionTokenIn } from 'account-client';

declare const process: { env: { ACCOUNTS_URL: string; ACCOUNTS_TOKEN: string; SESSION: string } };
const { ACCOUNTS_URL: url, ACCOUNTS_TOKEN: token, SESSION } = process.env;

const accounts = createServiceClient({ url, token });
const found = await accounts.service.session.mutate({ token: SESSION });
const stranger = await accounts.service.session.mutate({ token: 'x'.repeat(43) });
const impostor = await createServiceClient({ url, token: 'wrong' })
  .service.session.mutate({ token: SESSION })
  .catch((error: unknown) => isServiceError(error) && error.code);

let calls = 0;
const { check, forget } = createSessionChecker({
  url,
  token,
  cacheSeconds: 60,
  fetch: (...request) => {
    calls += 1;
    return fetch(...request);
  },
});
const inCookie = sessionTokenIn(`a=1; auth_session=${SESSION}`);
const checked = [...(await Promise.all([check(inCookie), check(inCookie)])), await check(inCookie)];
const callsForThree = calls;
checked.push(await check('x'.repeat(43)));
await forget(inCookie);
await check(inCookie);

console.log(
  JSON.stringify({
    found,
    stranger,
    impostor,
    checked: checked.map((session) => session?.user.id ?? null),
    callsForThree,
    callsInAll: calls,
  }),
);
