/** What an access key or token may be allowed to do, with a description for the documents. */
export const scopes = {
  'profile:read': 'read the profile, without the email address',
  'profile:write': 'change the profile; the answer contains it',
  'uploads:read': 'list the uploads, and read private ones',
  'uploads:write': 'add and delete uploads',
  email: 'see the email address in the profile',
} as const satisfies Record<string, string>;

export type Scope = keyof typeof scopes;

export const scopeNames = Object.keys(scopes) as [Scope, ...Scope[]];

export const isScope = (name: string): name is Scope => Object.hasOwn(scopes, name);
