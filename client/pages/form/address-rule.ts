import { isMailAddress } from '../../../server/shared/mail-address.ts';
import { text } from '../language/texts.ts';

/** The message for an address that the service would refuse. */
export const wrongAddress = ({ email }: { email: string }): { email?: string } =>
  isMailAddress(email) ? {} : { email: text('common.rules.invalid_email') };
