import { createServiceClient, isServiceError } from 'account-client';

declare const process: { env: { ACCOUNTS_URL: string; ACCOUNTS_TOKEN: string; SESSION: string } };
const { ACCOUNTS_URL: url, ACCOUNTS_TOKEN: token, SESSION } = process.env;

const accounts = createServiceClient({ url, token });
const found = await accounts.service.session.mutate({ token: SESSION });
const stranger = await accounts.service.session.mutate({ token: 'x'.repeat(43) });
const impostor = await createServiceClient({ url, token: 'wrong' })
  .service.session.mutate({ token: SESSION })
  .catch((error: unknown) => isServiceError(error) && error.code);

console.log(JSON.stringify({ found, stranger, impostor }));
