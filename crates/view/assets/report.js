/* Built from web/src by `npm run build`; sources 8ffbd8e80aab94c3 */
"use strict";(()=>{})();
