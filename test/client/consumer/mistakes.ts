import { createClient, isServiceError, type RegisterInput, type ServiceSessionOutput, type User } from 'account-client';

const client = createClient({ url: 'https://accounts.example.com' });

// @ts-expect-error: the password is missing
export const incomplete: RegisterInput = { name: 'Ada', email: 'ada@example.com' };
// @ts-expect-error: there is no such field
client.profile.update.mutate({ email: 'ada@example.com' });
// @ts-expect-error: a read is no mutation
client.profile.get.mutate();
// @ts-expect-error: there is no such code
isServiceError(undefined, 'NO_SUCH_CODE');
// @ts-expect-error: nobody may be logged in
export const name = (session: ServiceSessionOutput): string => session.user.name;

export const title = (user: User): string => user.bio;
export const code = (error: unknown): 'EMAIL_TAKEN' | undefined =>
  isServiceError(error, 'EMAIL_TAKEN') ? error.code : undefined;
