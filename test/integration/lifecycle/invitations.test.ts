import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { type EmbeddedAccounts, type LoggedIn, openAccounts, refused, request } from '../rig/accounts.ts';
import { moved } from '../rig/email-changes.ts';

/** Invitations by administrators, on embedded parts. */
let service: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts();
});
afterAll(() => service.close());

describe('an invitation', () => {
  const administrator = () =>
    service.loggedIn((user) => {
      user.role = 'admin';
    });
  const invite = ({ session }: LoggedIn, email: string) =>
    service.accounts.lifecycle.invitations.invite(session, { email, returnTo: '/there', language: 'de' }, request());

  test('is mailed in its language and recorded, and replaces an older one', async () => {
    const who = await administrator();
    const email = freshEmail();
    const former = await invite(who, email);
    const { id, ...invitation } = await invite(who, email);
    expect(invitation).toMatchObject({ email, invitedBy: who.user.id, returnTo: '/there' });
    const rows = service.database.query((tables) =>
      tables.selectFrom('invitations').select('id').where('email', '=', email).execute(),
    );
    expect(await rows).toEqual([{ id }]);
    expect(id).not.toBe(former.id);
    expect(await service.mailsTo(email)).toMatchObject([{ token_id: former.id }, { token_id: id, language: 'de' }]);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'user-invited', email });
  });

  test('to the address of a user, or one that can be undone to, is EMAIL_TAKEN', async () => {
    const [who, other] = [await administrator(), await service.loggedIn()];
    await expect(invite(who, other.user.email)).rejects.toEqual(refused('EMAIL_TAKEN'));
    await moved(service, other, freshEmail());
    await expect(invite(who, other.user.email)).rejects.toEqual(refused('EMAIL_TAKEN'));
  });

  test('is revoked once', async () => {
    const who = await administrator();
    const email = freshEmail();
    const { id } = await invite(who, email);
    const revoke = () => service.accounts.lifecycle.invitations.revokeInvitation(who.session, id, request());
    expect([await revoke(), await revoke()]).toEqual([true, false]);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'invitation-revoked', email });
  });

  test('is listed newest first, in pages, unless its address has a verified account by now', async () => {
    const who = await administrator();
    const emails = Array.from({ length: 3 }, () => freshEmail());
    for (const email of emails) await invite(who, email);
    const page = (limit: number, cursor?: string) =>
      service.accounts.lifecycle.invitations.listInvitations({ limit, cursor });
    const { invitations, nextCursor } = await page(2);
    expect(invitations.map(({ email }) => email)).toEqual([emails[2], emails[1]]);
    expect((await page(1, nextCursor)).invitations.map(({ email }) => email)).toEqual([emails[0]]);
    await service.insertUser((user) => {
      user.email = emails[2] ?? '';
    });
    expect((await page(1)).invitations.map(({ email }) => email)).toEqual([emails[1]]);
    expect((await page(100)).nextCursor).toBeUndefined();
  });

  test('by the operator has no target and no inviter, and its mail leaves at once', async () => {
    const email = freshEmail();
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const invitation = await service.accounts.lifecycle.invitations.inviteAsOperator(email);
    expect(wake).toHaveBeenCalledOnce();
    wake.mockRestore();
    expect(invitation).toMatchObject({ email, invitedBy: null, returnTo: null });
    expect(await service.mailKindsTo(email)).toEqual(['invitation']);
  });

  test('past the limit of mails to its address is RATE_LIMITED, and the former stays', async () => {
    const strict = await openAccounts({ LIMIT_MAIL: '1/900' });
    const { inviteAsOperator } = strict.accounts.lifecycle.invitations;
    const email = freshEmail();
    await inviteAsOperator(email);
    await expect(inviteAsOperator(email)).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      retryAfter: 900,
      limit: { points: 1, seconds: 900, variable: 'LIMIT_MAIL' },
    });
    expect(await strict.mailKindsTo(email)).toEqual(['invitation']);
    await strict.close();
  });

  test('with REGISTRATION=closed is refused, also by the operator', async () => {
    const closed = await openAccounts({ REGISTRATION: 'closed' });
    const { session } = await closed.loggedIn((user) => {
      user.role = 'admin';
    });
    const { invite: inviteIn, inviteAsOperator } = closed.accounts.lifecycle.invitations;
    const invited = { email: freshEmail(), returnTo: undefined, language: undefined };
    await expect(inviteIn(session, invited, request())).rejects.toEqual(refused('REGISTRATION_CLOSED'));
    await expect(inviteAsOperator(freshEmail())).rejects.toEqual(refused('REGISTRATION_CLOSED'));
    await closed.close();
  });
});
