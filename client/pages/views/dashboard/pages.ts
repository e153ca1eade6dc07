export { Activity } from './activity.tsx';
export { Applications } from './applications.tsx';
export { Profile } from './profile/profile.tsx';
export { Devices } from './security/devices.tsx';
export { Security } from './security/security.tsx';
export { YourData } from './your-data.tsx';
